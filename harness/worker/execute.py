"""Runs anybody's micrograd program, unchanged, on an engine: `python -m harness.worker.execute ENGINE SCRIPT ARG…`.

The program's `micrograd.engine` and `micrograd.nn` are modules made here, over the engine's Value.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType

import engines
from engines.api import Engine
from engines.graph.draw import draw_dot


def offer_micrograd(engine: Engine) -> None:
    """Make `import micrograd` and its modules give that engine's classes."""
    package, value, nn = ModuleType("micrograd"), ModuleType("micrograd.engine"), ModuleType("micrograd.nn")
    value.__dict__.update(Value=engine.Value, draw_dot=draw_dot)
    nn.__dict__.update(engine.nn._asdict(), Value=engine.Value)
    package.__dict__.update(engine=value, nn=nn, __path__=[])
    sys.modules.update({"micrograd": package, "micrograd.engine": value, "micrograd.nn": nn})


def execute(engine_name: str, script: str, arguments: list[str]) -> None:
    """Run the script as `python SCRIPT ARG…` would: its folder on the path, its name `__main__`."""
    engine = engines.load(engine_name)
    engine.check()
    offer_micrograd(engine)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    execute(sys.argv[1], sys.argv[2], sys.argv[3:])
