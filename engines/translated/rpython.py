"""The engine `rpython`: `micrograd.rpy`, translated once for all tapes by the package rpython, as a kernel."""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import weakref
from array import array
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from zoomgrad.engines import asking
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.files import cache_folder
from zoomgrad.engines.graph.expr import NAMES, PYTHON
from zoomgrad.engines.graph.ops import LIBM, OPS
from zoomgrad.engines.graph.tape import Tape, codes
from zoomgrad.engines.kernel.building import loading, private_folder, write
from zoomgrad.engines.kernel.c_tree import read
from zoomgrad.engines.kernel.kept import kept
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.kernel.python_kernel import PythonKernel
from zoomgrad.engines.kernel.toolchains import Toolchain, usable
from zoomgrad.engines.translated.build import COMPILERS, run

SETTING = "ZOOMGRAD_RPYTHON"
"""Environment variable: the Python 2.7 to translate with, instead of those on PATH and of pyenv."""
PACKAGE = "rpython==0.2.1"
# With RPython's normal model of traces, a trace has fewer than 2**14 results, whatever trace_limit is.
FLAGS = {False: ("-O2",), True: ("-Ojit", "--translation-jit_opencoder_model=big")}
_START = """import sys; sys.path.insert(0, sys.argv.pop(1)); from rpython.translator.goal.translate import main
if len(sys.argv) > 1: main()"""
_INTERFACE = """
void rpython_startup_code(void);
void rp_new(long, long *columns, long rows, double *constants, long, long loss, long *outputs, long, long parameters);
double rp_forward(long, double *x, double *p, double *y);
void rp_backward(long, double *q);
void rp_update(double *p, double *q, long count, double rate, double batch);
"""


@cache
def translator() -> tuple[tuple[str, ...], Toolchain]:
    """A Python 2.7 that has the package, or finds it in our cache, and a C compiler. Raises Unavailable."""
    packages = str(cache_folder("rpython") or "")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser())
    of_pyenv = [str(python) for name in ("2.7*", "pypy2*") for python in pyenv.glob(f"versions/{name}/bin/python")]
    chosen = os.environ.get(SETTING)
    for program in [chosen] if chosen else [*asking.on_path(r"python2(\.7)?|pypy2?"), *of_pyenv]:
        command = (program, "-E", "-c", _START, packages)
        with contextlib.suppress(asking.NoAnswer):
            asking.ask(command, seconds=30.0)
            return command, next(usable(COMPILERS))
    install = f"python2.7 -m pip install {packages and f'--target {packages} '}{PACKAGE}"
    raise Unavailable("no Python 2.7 has the package rpython", f"`{install}`, or set {SETTING} to one that has it.")


def text() -> str:
    """`micrograd.rpy`, and after it the table of ops as functions, with those of libm that they call."""
    function, contribute = ["def function(op, a, b, k):"], ["def contribute(op, left, right, a, b, k, out, g):"]
    for name, op in OPS.items():
        data, *terms = (PYTHON.spell(expr, NAMES)[0] for expr in op.exprs)
        function += [f"    if op == {codes()[name]}:  # {name}", f"        return {data}"]
        contribute.append(f"    {'el' * (len(contribute) > 1)}if op == {codes()[name]}:  # {name}")
        contribute += [f"        {operand}.grad += {term}" for operand, term in zip(("left", "right"), terms)]
    libm = [f'{name} = libm("{name}", {arity})' for name, arity in LIBM]
    return "\n".join([read("translated/micrograd.rpy"), *libm, *function, "    return 0.0", *contribute, ""])


@contextlib.contextmanager
def _translated(jit: bool) -> Iterator[Path]:
    command, tool = translator()
    with private_folder() as folder:
        write(folder / "micrograd.py", text().encode())
        options = ("--batch", "--shared", *FLAGS[jit], f"--cc={' '.join(tool.command)}", "micrograd.py")
        yield run("rpython", [*command, *options], folder, "libmicrograd*")


class Rows(NamedTuple):
    """A tape for the library with a JIT, or for the one without."""

    tape: Tape
    jit: bool

    def lines(self) -> Iterator[str]:
        """The text that is translated, which depends on no tape."""
        yield from text().splitlines()

    def kernel(self, clock: Clock) -> Micrograd:
        """The kernel. The first one of a process loads the library, and translates unless it is kept. Its compile time
        includes the translation, even if another process made it.
        """
        with clock.phase("compile"):
            if self.jit not in _LIBRARIES:
                recipe = ("rpython", PACKAGE, platform.machine(), str(translator()[1]), *FLAGS[self.jit], text())
                with kept("translated", recipe, _translated(self.jit)) as (path, seconds), loading():
                    _LIBRARIES[self.jit] = Library(str(path))
                clock.phases["compile"] += seconds
        with clock.phase("load"):
            return Micrograd(_LIBRARIES[self.jit], self.tape)


class Library:
    """The translated text, loaded."""

    def __init__(self, path: str) -> None:
        import cffi

        self._ffi = cffi.FFI()
        self._ffi.cdef(_INTERFACE)
        self._lib = self._ffi.dlopen(path)
        self._lib.rpython_startup_code()
        self._alone = threading.Lock()  # RPython's collector serves one thread
        self.new, self.free = count(), list[int]()  # places never used, and places whose kernels are gone

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function. Arrays are passed without a copy."""
        pointers, numbers = {"d": "double[]", "l": "long[]"}, (int, float)
        passed = [
            a if isinstance(a, numbers) else self._ffi.from_buffer(pointers[memoryview(a).format], a, True)
            for a in arguments
        ]
        with self._alone:
            return getattr(self._lib, f"rp_{name}")(*passed)


_LIBRARIES: dict[bool, Library] = {}  # with a JIT or without -> the library of this process


class Micrograd(PythonKernel):
    """Kernel over the library, which keeps the graph of a step until the next one."""

    def __init__(self, library: Library, tape: Tape) -> None:
        super().__init__(0)
        self.library, self.place = library, library.free.pop() if library.free else next(library.new)
        weakref.finalize(self, library.free.append, self.place)
        columns = array("l", [*tape.ops, *tape.left, *tape.right, *tape.index])
        constants, outputs = array("d", map(float, tape.constants)), array("l", tape.outputs)
        rows = (columns, len(tape), constants, len(constants), tape.loss, outputs, len(outputs), tape.parameters)
        library.call("new", self.place, *rows)

    def values(self, x: Any, p: Any, w: Doubles, y: Any) -> float:
        return float(self.library.call("forward", self.place, x, p, y))

    def gradients(self, x: Any, p: Any, w: Doubles, q: Any) -> None:
        self.library.call("backward", self.place, q)

    forward, backward = values, gradients

    def update(self, p: Any, q: Any, rate: float, batch: int) -> None:
        self.library.call("update", p, q, len(p), rate, float(batch))

    def enter(self, buffers: Any) -> Any:
        """The library reads and writes the caller's buffers."""
        return buffers
