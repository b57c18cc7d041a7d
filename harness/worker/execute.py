"""Run an unchanged micrograd program on an engine: `python -m harness.worker.execute ENGINE SCRIPT ARG…`.

The program imports `micrograd.engine` and `micrograd.nn`. This module makes both from the engine's Value.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import engines
from engines.api import Engine, Unavailable
from engines.graph.draw import draw_dot
from harness.worker.lifeline import HARNESS, end_with_the_harness

WRONG_USE = 2


def able(engine_name: str) -> Engine:
    """Load an engine that runs here and has a Value. Raises Unavailable."""
    engine = engines.load(engine_name)
    if engine.Value is None:
        raise Unavailable(
            f"{engine_name} runs whole models only: it has no Value to write a program in",
            "Use an engine with a Value, such as `--engine tuple`.",
        )
    engine.check()
    return engine


def offer_micrograd(engine: Engine) -> None:
    """Make `import micrograd` provide the engine's classes."""
    package, value, nn = ModuleType("micrograd"), ModuleType("micrograd.engine"), ModuleType("micrograd.nn")
    value.__dict__.update(Value=engine.Value, draw_dot=draw_dot)
    nn.__dict__.update(engine.nn._asdict(), Value=engine.Value)
    package.__dict__.update(engine=value, nn=nn, __path__=[])
    sys.modules.update({"micrograd": package, "micrograd.engine": value, "micrograd.nn": nn})


def run_script(engine: Engine, script: str, arguments: list[str]) -> dict[str, Any]:
    """Run the script as `python SCRIPT ARG…` does: with its folder on the path, as `__main__`. Returns its names."""
    offer_micrograd(engine)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    return runpy.run_path(script, run_name="__main__")


def main() -> None:
    """Run the script that the arguments name, or print why the engine can't."""
    end_with_the_harness()
    # Processes that the program starts belong to the user and may outlive the harness.
    os.environ.pop(HARNESS, None)
    try:
        engine = able(sys.argv[1])
    except Unavailable as missing:
        sys.stderr.write(f"zoomgrad: {missing}\n")
        sys.exit(WRONG_USE)
    run_script(engine, sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    main()
