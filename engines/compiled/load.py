"""An object, or a source that needs no C compiler -> Kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.kernel.building import Built, loading
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.kernel.extension import Extension
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.kernel.program import Kernel
from zoomgrad.engines.machine.kernel import MachineKernel
from zoomgrad.engines.machine.program import Code
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.emit.numpy_step import NumpyKernel
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.straight.bytecode import Bytecode, Interpreter
from zoomgrad.engines.straight.python_source import PythonSource
from zoomgrad.engines.translated.rpython import Rows


def load(built: Built, workspace: int, options: Options) -> Kernel:
    """Load an object. workspace: doubles that its functions need. Raises BuildFailed if the system refuses it."""
    with loading():
        if options.target == "module":
            return Extension(str(built.path), workspace)
        return Library(interface().dlopen(str(built.path)), workspace)


def load_unbuilt(source: Any, clock: Clock) -> Kernel:
    """Load a source that needs no C compiler, such as a Step for NumPy. A source that is a Kernel is returned."""
    if isinstance(source, Rows):
        return source.kernel(clock)
    with clock.phase("compile" if isinstance(source, Source) else "load"):
        kernel: Kernel = KERNELS[type(source)](source) if type(source) in KERNELS else source
        return kernel


KERNELS: dict[type, Callable[[Any], Kernel]] = {
    Step: NumpyKernel,
    Code: MachineKernel,
    Bytecode: Interpreter,
    Source: PythonSource,
}
"""Kind of source -> the kernel that runs it."""
