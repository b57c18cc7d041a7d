"""Run an unchanged micrograd program on an engine.

`python -m zoomgrad.harness.worker.programs.execute ENGINE REPLACED SCRIPT ARG…`. The program imports `micrograd.engine`
and `micrograd.nn`, which `literature` makes from the engine's Value. ENGINE is a name, or empty for the fastest engine
that runs a program unchanged. REPLACED names a class of the program that the engine's Value replaces, or is empty.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from zoomgrad import engines
from zoomgrad.engines.api import Engine, Unavailable
from zoomgrad.harness.worker.lifeline import HARNESS, end_with_the_harness
from zoomgrad.harness.worker.programs import notebook, own_modules, script
from zoomgrad.harness.worker.programs.literature import offer, with_ids

WRONG_USE = 2

UNCHANGED = ("native", "hoisted")
"""Engines for programs that build a graph for every step, fastest first. The last one runs everywhere."""


def able(engine_name: str) -> Engine:
    """Load an engine that runs here and has a Value. No name: the first of UNCHANGED. Raises Unavailable."""
    if not engine_name:
        return _first_of(UNCHANGED)
    engine = engines.load(engine_name)
    engine.check()
    if engine.Value is None:
        raise Unavailable(
            f"{engine_name} runs whole models only: it has no Value for a program to use",
            "Use an engine with a Value, such as `--engine tuple`.",
        )
    return engine


def _first_of(names: tuple[str, ...]) -> Engine:
    for name in names[:-1]:
        with contextlib.suppress(Unavailable):
            return able(name)
    return able(names[-1])


def execute(engine: Engine, path: Path, arguments: list[str], *, replaced: str = "") -> dict[str, Any]:
    """Run the program as `python SCRIPT ARG…` does: with its folder on the path, as `__main__`. Return its names.

    A notebook's code cells run one after the other.

    A process can run only one program, because its threads and exit handlers may need the engine to the end. At exit, a
    warning says if the program never imported it. Raises WrongScript, Unavailable, SyntaxError, and what the program
    raises.
    """
    tree, left_out = notebook.parse(path) if path.suffix == ".ipynb" else (own_modules.parse(path), [])
    if left_out:
        lines = "1 line" if len(left_out) == 1 else f"{len(left_out)} lines"
        sys.stderr.write(f"zoomgrad: {path.name}: left out {lines} that only Jupyter runs, such as `{left_out[0]}`\n")
    own_modules.check_names(tree, path)
    uses_ids = script.uses_ids(tree, path)
    if (uses_ids or replaced) and not getattr(engine, "extensible", True):
        raise Unavailable(
            f"the program needs a class derived from Value, and {engine.name} permits none",
            "Use another engine, such as `--engine hoisted`.",
        )
    value = with_ids(engine.Value) if uses_ids else engine.Value
    warning = script.never_imported(tree, path, engine.name)
    changed = script.replace(tree, replaced, value, path) if replaced else {}
    tree = changed.pop(path, tree)
    code = compile(tree, str(path), "exec", dont_inherit=True)
    imported = offer(engine, value, own_first=bool(changed))
    own_modules.import_changed(changed)
    atexit.register(_warn_unless, imported, warning)
    sys.argv = [str(path), *arguments]
    sys.path[0] = str(path.resolve().parent)
    program = ModuleType("__main__")
    program.__dict__["__file__"] = str(path.absolute())
    sys.modules["__main__"] = program
    exec(code, program.__dict__)  # noqa: S102  (the program is the user's)
    return program.__dict__


def _warn_unless(imported: set[str], text: str) -> None:
    if imported:
        return
    # The program may have closed either stream.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.write(f"zoomgrad: {text}\n")


def run(engine_name: str, path: Path, arguments: list[str], *, replaced: str = "") -> dict[str, Any]:
    """Execute a user's program in this worker, and return its names. Exits with a message if it can't start."""
    end_with_the_harness()
    # Processes that the program starts belong to the user and may outlive the harness.
    os.environ.pop(HARNESS, None)
    try:
        return execute(able(engine_name), path, arguments, replaced=replaced)
    except (Unavailable, own_modules.WrongScript) as problem:
        sys.stderr.write(f"zoomgrad: {problem}\n")
        sys.exit(WRONG_USE)
    except SyntaxError as error:
        if error.filename != str(path):
            raise
        sys.exit("".join(traceback.format_exception_only(SyntaxError, error)).rstrip())  # without frames of ours


if __name__ == "__main__":
    name, class_name, program, *rest = sys.argv[1:]
    run(name, Path(program), rest, replaced=class_name)
