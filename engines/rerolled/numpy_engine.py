"""The engine that runs recovered loops as NumPy array operations, and irregular graphs as `bytecode` does."""

from __future__ import annotations

from typing import Any

from zoomgrad.engines.kernel.engine import Clock, Order
from zoomgrad.engines.kernel.program import Kernel
from zoomgrad.engines.rerolled.emit.numpy_step import NumpyKernel
from zoomgrad.engines.rerolled.engine import Rerolled
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.straight.bytecode import Interpreter, assemble, bytecode_text
from zoomgrad.engines.straight.lower import Code


class NumpyEngine(Rerolled):
    """Recovered loops as array operations."""

    fitted = Form(rearrangements=("in place",))

    def source(self, code: Any) -> str:
        if isinstance(code, Code):
            return bytecode_text(code)
        return "".join(f"{line}\n" for line in (*code.loops.lines(), *code.lines()))

    def build(self, code: Any, clock: Clock, order: Order) -> Kernel:
        with clock.phase("load"):
            return Interpreter(assemble(code)) if isinstance(code, Code) else NumpyKernel(code)


ENGINES = (
    NumpyEngine(
        "rerolled-numpy",
        idea="loops recovered from the scalar tape, as array operations",
        builds_on="bytecode",
        typical_row_seconds=2e-9,
        typical_compile_row_seconds=3e-6,
    ),
)
