"""The update in C, for kernels in C that machine code can't drive. Python takes the steps.

Example: momentum keeps one number, the first state. Its update is

    void update(long long count, const double *numbers, double *p, double *q, double *s0)
    {
        for (long long i = 0; i < count; i++) {
            s0[i] = 0.9 * s0[i] + q[i] / numbers[1];
            p[i] -= numbers[0] * s0[i];
            q[i] = 0.0;
        }
    }
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from zoomgrad.engines.graph.expr import ATOM_PRECEDENCE, C
from zoomgrad.engines.graph.optimisers import BATCH, RATE, Optimiser
from zoomgrad.engines.kernel.building import build, loading
from zoomgrad.engines.kernel.c_text import libm, unit
from zoomgrad.engines.kernel.c_tree import Assign, For, Function
from zoomgrad.engines.kernel.toolchains import STRICT, Toolchain
from zoomgrad.engines.lengths.conductor import Conductor, Member, Shared


def source(optimiser: Optimiser) -> Function:
    """The function that updates every parameter. numbers: the rate, the optimiser's factors, and the batch."""
    states = {name: f"s{number}" for number, name in enumerate(optimiser.states)}
    buffers = {"p": "p", "q": "q", **states}
    numbers = (RATE.name, *optimiser.factors, BATCH.name)
    texts = {name: f"{buffer}[i]" for name, buffer in buffers.items()}
    names = {
        **{name: (f"numbers[{index}]", ATOM_PRECEDENCE) for index, name in enumerate(numbers)},
        **{name: (text, ATOM_PRECEDENCE) for name, text in texts.items()},
    }
    body = [
        *(Assign(texts[to], C.spell(expr, names)[0], "-=" if to == "p" else "=") for to, expr in optimiser.steps()),
        Assign("q[i]", "0.0"),
    ]
    parameters = ("long long count", "const double *numbers", *(f"double *{buffer}" for buffer in buffers.values()))
    return Function("void", "update", parameters, [For("i", "count", body)])


class ConductorInC(Conductor):
    """Updates all parameters in C."""

    def __init__(self, tool: Toolchain, optimiser: Optimiser, members: Sequence[Member], shared: Shared) -> None:
        """Compile the update. Raises BuildFailed."""
        import cffi

        super().__init__(optimiser, members, shared)
        function = source(optimiser)
        self._ffi = cffi.FFI()
        self._ffi.cdef(function.prototype)
        flags = STRICT if tool.family == "tcc" else (*STRICT, "-O2")
        with build(tool, [unit([libm([("pow", 2)]), function])], flags) as built, loading():
            self._library = self._ffi.dlopen(str(built.path))
        self._buffers = [self._doubles(buffer) for buffer in shared.all]

    def update(self, index: int, rate: float, batch: int) -> None:
        numbers = array("d", [*self._optimiser.numbers(index, rate), batch])
        self._library.update(len(self.shared.p), self._doubles(numbers), *self._buffers)

    def _doubles(self, buffer: object) -> object:
        return self._ffi.from_buffer("double[]", buffer, True)  # True: else PyPy copies what it can't address
