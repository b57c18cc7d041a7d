"""Run one program, and write what became of it: `python child.py HOW SCRIPT REPLY`.

HOW is empty to run the program by itself, with the published `micrograd` if it brings none, or `exec` to run it as
`zoomgrad exec` does. It is a separate script, so that the program finds its own package `tests`.

Plots and pictures do nothing here. The program may write below its folder only, start no process and open no
connection. That stops careless programs; it does not confine a hostile one.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import random
import sys
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.interpreted.baseline import Value
from zoomgrad.engines.native import build
from zoomgrad.harness.worker.programs import probe
from zoomgrad.harness.worker.programs.classes import WrongScript
from zoomgrad.harness.worker.programs.execute import execute

SHOWN_ONLY = {
    *("matplotlib", "mpl_toolkits", "seaborn", "plotly", "graphviz"),
    *("pydot", "pyvis", "IPython", "ipywidgets", "networkx"),
}
"""Packages whose results a program shows and does not compute with."""


CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.chmod", "os.truncate")
PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty")
"""Audit events."""


class Nothing(types.ModuleType):
    """A module, an object or a result that does nothing, in place of a plot."""

    __path__ = ()
    __all__ = ()

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__("nothing")

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *_: object, **__: object) -> Nothing:
        return Nothing()

    def __iter__(self):  # as in `figure, axes = plt.subplots()`
        return iter((Nothing(), Nothing()))

    def __getitem__(self, _: object) -> Nothing:
        return Nothing()

    def __setitem__(self, *_: object) -> None: ...

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __repr__(self) -> str:
        return "nothing"


class Stubs(MetaPathFinder, Loader):
    """Import Nothing in place of the packages that only show."""

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in SHOWN_ONLY else None

    def create_module(self, spec):
        return Nothing()

    def exec_module(self, module):
        """Nothing to do."""


class Cells:
    """What became of a notebook's cells."""

    def __init__(self):
        self.failed = {}
        self.backward = 0

    @contextlib.contextmanager
    def guard(self, number, backward):
        try:
            yield
            self.backward += backward
        except Exception as error:
            missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
            self.failed[number] = f"needs {missing}" if missing else f"{type(error).__name__}: {error}"[:300]
            print(f"[cell {number}: {type(error).__name__}]")


def show(value):
    """Print a cell's last expression, as Jupyter does."""
    if value is not None and not isinstance(value, Nothing):
        print(repr(value))


def confine(folder):
    """Refuse writes outside the folder, processes and connections."""
    inside = f"{os.path.realpath(folder)}{os.sep}"
    places = (inside, "/dev/null")

    def hook(event, arguments):
        if is_probe(event):
            return
        if event == "open":
            path, mode, flags = arguments
            writes = (mode and set(mode) & set("wax+")) or (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and isinstance(path, (str, bytes)) and not _below(path, places):
                raise PermissionError(f"a program may write in its own folder only, not {path!r}")
        elif event in CHANGES:
            for path in arguments[:2]:
                if isinstance(path, (str, bytes)) and not _below(path, places):
                    raise PermissionError(f"a program may write in its own folder only, not {path!r}")
        elif event in PROCESSES:
            raise PermissionError("a program may not start processes here")
        elif event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
            raise ConnectionError("there is no network here")

    sys.addaudithook(hook)


def is_probe(event):
    """Whether a process is copied to compare a class with ours."""
    return event == "os.fork" and sys._getframe(2).f_code is probe.probe.__code__


def _below(path, places):
    return os.path.realpath(os.fsdecode(path)).startswith(places)


def main():
    how, path, reply = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    cells = Cells()
    builtins._stranger_cell, builtins._stranger_show = cells.guard, show
    baseline = SimpleNamespace(name="baseline", Value=Value)
    build.load()  # before processes are refused
    sys.meta_path.insert(0, Stubs())
    sys.dont_write_bytecode = True
    random.seed(1337)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(1337)
    report = {"outcome": "ran"}
    answer = reply.open("w", encoding="utf-8")
    confine(os.environ["STRANGER_FOLDER"])
    try:
        execute(path, [], **({} if how else {"engine": baseline}))
    except SystemExit as end:
        report["outcome"] = "ran" if end.code in (None, 0) else f"exit code {end.code}"[:300]
    except ModuleNotFoundError as error:
        report["outcome"] = f"needs {error.name}"
    except (Unavailable, WrongScript) as refused:
        report["outcome"] = f"refused: {str(refused).splitlines()[0]}"
    except BaseException as error:
        report["outcome"] = f"{type(error).__name__}: {error}"[:300]
    report["cells"] = {str(number): text for number, text in cells.failed.items()}
    report["backward"] = cells.backward
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    json.dump(report, answer)
    answer.close()
    os._exit(0)  # threads of the program don't keep it alive


if __name__ == "__main__":
    main()
