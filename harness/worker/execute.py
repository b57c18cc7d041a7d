"""Run an unchanged micrograd program on an engine: `python -m harness.worker.execute ENGINE REPLACED SCRIPT ARG…`.

The program imports `micrograd.engine` and `micrograd.nn`, which `literature` makes from the engine's Value. REPLACED is
the name of a class in the program that the engine's Value replaces, or empty.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import engines
from engines.api import Engine, Unavailable
from harness.worker import script
from harness.worker.lifeline import HARNESS, end_with_the_harness
from harness.worker.literature import offered

WRONG_USE = 2


def able(engine_name: str) -> Engine:
    """Load an engine that runs here and has a Value. Raises Unavailable."""
    engine = engines.load(engine_name)
    if engine.Value is None:
        raise Unavailable(
            f"{engine_name} runs whole models only: it has no Value for a program to use",
            "Use an engine with a Value, such as `--engine tuple`.",
        )
    engine.check()
    return engine


def execute(engine: Engine, path: Path, arguments: list[str], *, replaced: str = "") -> None:
    """Run the program as `python SCRIPT ARG…` does: with its folder on the path, as `__main__`.

    Warns on standard error if the program never imported the engine. Raises what the program raises.
    """
    try:
        tree = script.parse(path)
        if replaced:
            tree = script.replace(tree, replaced, engine, path)
        numbered = script.uses_ids(tree, path)
    except script.WrongScript as wrong:
        _refuse(wrong)
    sys.argv = [str(path), *arguments]
    sys.path[0] = str(path.resolve().parent)
    program = ModuleType("__main__")
    program.__dict__["__file__"] = str(path)
    sys.modules["__main__"] = program
    with offered(engine, numbered=numbered) as imported:
        try:
            exec(compile(tree, str(path), "exec"), program.__dict__)  # noqa: S102  (the program is the user's)
        finally:
            if not imported:
                sys.stdout.flush()
                sys.stderr.write(f"zoomgrad: {script.never_imported(tree, path, engine.name)}\n")


def main() -> None:
    """Run the script that the arguments name, or print why the engine can't."""
    end_with_the_harness()
    # Processes that the program starts belong to the user and may outlive the harness.
    os.environ.pop(HARNESS, None)
    name, replaced, path, *arguments = sys.argv[1:]
    try:
        engine = able(name)
    except Unavailable as missing:
        _refuse(missing)
    execute(engine, Path(path), arguments, replaced=replaced)


def _refuse(problem: Exception) -> NoReturn:
    sys.stderr.write(f"zoomgrad: {problem}\n")
    sys.exit(WRONG_USE)


if __name__ == "__main__":
    main()
