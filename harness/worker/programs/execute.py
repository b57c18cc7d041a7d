"""Run a micrograd program unchanged, in this process, with its Value in C.

`python -m zoomgrad.harness.worker.programs.execute ENGINE KEEP SCRIPT ARG…`. The program's own class like Value
is replaced if it computes the same (`classes`). `modules` provides the modules of micrograd that it imports and does
not bring.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Optional

from zoomgrad.engines.api import Unavailable, UnknownName
from zoomgrad.harness.worker.lifeline import HARNESS
from zoomgrad.harness.worker.programs.classes import tell, watch

WRONG_USE = 2
if TYPE_CHECKING:
    from zoomgrad.engines.row import Row

FASTEST = "native"
USES_IDS = re.compile(
    r"\._id\b|\.(getgrad|backward_compile)\(|\.(compile|var)\(\)|\bengine\.counter\b|import counter\b"
)
"""What only Values with identifiers have, as in "Compiling ML models to C for fun"."""


class WrongScript(Exception):
    """The program can't run as requested. The message gives the cause and the remedy."""


def able(name: str) -> Row:
    """Load an engine that runs here and has a Value. Raises Unavailable and UnknownName."""
    from zoomgrad import engines  # takes a while, and few programs name an engine

    engine = engines.load(name)
    engine.check()
    if engine.Value is None:
        raise Unavailable(f"{name} runs whole models only", "Use an engine with a Value, such as `--engine tuple`.")
    if not engine.rebuilds:
        why = "the program builds a graph for every step; leave out --engine for the fastest engine here"
        tell(f"{name} {'compiles' if engine.compiles else 'replays'} nothing under exec, because {why}")
    return engine


def fastest_value(*, with_ids: bool) -> Any:
    """The class for programs that build a graph for every step. Only one in Python takes identifiers."""
    from zoomgrad.engines.interpreted import hoisted
    from zoomgrad.engines.native import build

    with contextlib.suppress(Unavailable):
        return hoisted.Value if with_ids else build.load()
    return hoisted.Value


def execute(path: Path, arguments: list[str], *, engine: Optional[Row] = None, keep: bool = False) -> None:
    """Run the program as `python SCRIPT ARG…` does: with its folder on the path, as `__main__`.

    engine: whose Value stands in for micrograd's, by default the fastest. keep: leave the program's own class as it is.

    A process can run only one program, because its threads and exit handlers may need the engine to the end. Raises
    WrongScript, Unavailable, SyntaxError, and what the program raises.
    """
    text, code = _compiled(path)
    with_ids = bool(USES_IDS.search(text))
    if with_ids and engine is not None and not engine.extensible:
        raise Unavailable(f"{engine.name} permits no class derived from its Value", "Use `--engine hoisted`.")
    in_c = (engine is None or engine.name == FASTEST) and sys.implementation.name == "cpython"  # PyPy is fast itself
    from zoomgrad.harness.worker.programs.modules import Modules
    from zoomgrad.literature import contents

    modules = Modules(lambda: contents(engine.Value if engine else fastest_value(with_ids=with_ids), with_ids=with_ids))
    sys.meta_path.append(modules)
    replaces = in_c and not keep
    seen = watch(formulas="zoomgrad" not in text) if replaces else []
    if engine or replaces:
        atexit.register(_warn_unless, modules.imported, seen, path)
    sys.argv = [str(path), *arguments]
    sys.path[0] = str(path.resolve().parent)
    program = ModuleType("__main__")
    program.__dict__["__file__"] = str(path.absolute())
    sys.modules["__main__"] = program
    exec(code, program.__dict__)  # noqa: S102  (the program is the user's)


def _compiled(path: Path) -> tuple[str, CodeType]:
    """A program's text and code. A notebook's code cells are one program, without the lines that only Jupyter runs."""
    try:
        content = path.read_bytes()
        if path.suffix == ".ipynb":
            import json  # few programs are notebooks

            cells = ["".join(cell["source"]) for cell in json.loads(content)["cells"] if cell["cell_type"] == "code"]
            text = "\n".join(map(_python, cells))
            return text, compile(text, f"{path} (its code cells)", "exec", dont_inherit=True)
        return content.decode("utf-8", "replace"), compile(content, str(path), "exec", dont_inherit=True)
    except SyntaxError:
        sys.tracebacklimit = 0  # shows the program's line without frames of ours
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WrongScript(f"{path}: can't be read ({error!r})\n  Name a Python program or a notebook.") from error


def _python(cell: str) -> str:
    """A cell without what only Jupyter runs. Python stays as it is, because a line may begin with the operator %."""
    with contextlib.suppress(SyntaxError):
        compile(cell, "cell", "exec", dont_inherit=True)
        return cell
    lines = "" if re.match(r"%%(?!time|capture|prun)", cell) else re.sub(r"(?m)^([ \t]*)%time ", r"\1", cell)
    return re.sub(r"(?m)^([ \t]*)[%!].*", r"\1pass", lines)


def _warn_unless(imported: set[str], seen: list[str], path: Path) -> None:
    if not imported and not seen:
        tell(f"{path.name} neither imported micrograd nor had a class to replace, so there was nothing to speed up")


def run(engine_name: str, keep: bool, path: Path, arguments: list[str]) -> None:
    """Execute a user's program. Exits with a message if it can't start."""
    try:
        execute(path, arguments, engine=able(engine_name) if engine_name else None, keep=keep)
    except (Unavailable, UnknownName, WrongScript) as problem:
        tell(str(problem))
        sys.exit(WRONG_USE)


def quickly(arguments: list[str]) -> bool:
    """Run `zoomgrad exec` with these arguments, if they need no more than this module. False: the command line must.

    The command line takes several times as long to import as everything else that a program needs to start.
    """
    keep = arguments[:1] == ["--keep"]
    rest = arguments[keep:]
    if not rest or rest[0].startswith("-") or not Path(rest[0]).is_file():
        return False
    run("", keep, Path(rest[0]), rest[1:])
    return True


if __name__ == "__main__":
    os.environ.pop(HARNESS, None)  # `with_project` sets it, but no harness waits for this program
    name, kept, script, *others = sys.argv[1:]
    run(name, bool(kept), Path(script), others)
