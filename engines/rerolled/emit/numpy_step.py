"""Step -> Kernel in NumPy: the runs of each routine as a few array operations, and the sections in Python.

This back end runs plain steps, and steps that update in place, as `fitted.ARRAYS` says.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional

from zoomgrad.engines.columns import BYTES, Column
from zoomgrad.engines.kernel.program import Buffers, Doubles, Stretch
from zoomgrad.engines.kernel.python_kernel import PythonKernel
from zoomgrad.engines.rerolled.rearrange.in_place import SINKS
from zoomgrad.engines.rerolled.step.step import Step

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.emit.numpy_runs import Array


class NumpyKernel(PythonKernel):
    """A Kernel over the step. It has one workspace, of which its runs hold views."""

    def __init__(self, step: Step) -> None:
        # Here, because every compiled engine imports this module, also without NumPy.
        import numpy as np

        from zoomgrad.engines.rerolled.emit.numpy_runs import Runs

        self.np = np
        super().__init__(step.workspace)
        loops = step.loops
        self.step = step
        self.away = loops.gradient_offset
        """Distance from a parameter to its gradient."""
        self.gradients_are_zero = False
        self._index, self._place = loops.indices_and_places()
        self._outputs = np.array([output.base for output in loops.outputs], np.int64)
        self.w: Any = np.zeros(step.workspace)
        k, p, q, x = map(loops.area, "kpqx")
        self._inputs = self.w[x.start : x.start + loops.inputs]
        self.w[k.start : k.start + len(loops.numbers)] = loops.numbers
        self._parameters, self._gradients = self.w[p.start : p.stop], self.w[q.start : q.stop]
        self.runs = Runs(self.w)

    def workspace(self) -> Any:
        return self.w

    @cached_property
    def routines(self) -> dict[str, list[Callable[[], None]]]:
        """All runs as functions without arguments. The first call makes them, as they are no part of loading."""
        return {name: [self.runs.of(run) for run in runs] for name, runs in self.step.routines.items()}

    def _perform(self, *routines: str) -> None:
        for routine in routines:
            for run in self.routines[routine]:
                run()

    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        self._inputs[:] = x
        self._take(p)
        with self.np.errstate(all="ignore"):
            return self.values(x, p, w, y)

    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        self._take(q, self.away)
        with self.np.errstate(all="ignore"):
            self._perform("gradients", "sinks")
        self._give(q, self.away)

    def values(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        try:
            self._perform("values")
        finally:  # the outputs are known before a loss overflows, which may raise
            self._view(y)[:] = self.w[self._outputs]
        return float(self.w[self.step.loops.loss.base])

    def set_input(self, x: Any, columns: Sequence[Column], row: int) -> None:
        at, w = 0, self._view(x)
        for column in columns:
            width, cells = column.width, self._view(column.data)
            inputs = self.np.arange(width) == cells[row] if column.one_hot else cells[row * width : (row + 1) * width]
            w[at : at + width] = inputs / column.divisor if column.kind == BYTES else inputs
            at += width

    def update(self, p: Any, q: Any, rate: float, batch: int) -> None:
        parameters, gradients = self._view(p), self._view(q)
        with self.np.errstate(all="ignore"):
            change = rate * gradients
            parameters -= change if batch == 1 else change / batch
        gradients[:] = 0.0

    def _view(self, buffer: Any) -> Array:
        return self.np.asarray(memoryview(buffer))

    def _take(self, buffer: Doubles, away: int = 0) -> None:
        """Copy the caller's parameters, or their gradients, to the workspace. away: distance from the parameters."""
        self.w[self._place + away] = self._view(buffer)[self._index]

    def _give(self, buffer: Doubles, away: int = 0) -> None:
        self._view(buffer)[self._index] = self.w[self._place + away]

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        with self.np.errstate(all="ignore"):
            return super().train(buffers, stretch)

    def enter(self, buffers: Any) -> Any:
        """The workspace has a row's inputs, and keeps parameters and gradients."""
        _, p, w, y, q = buffers
        self._take(p)
        self._take(q, self.away)
        self.gradients_are_zero = False
        return self._inputs, p, w, y, q

    def learn(self, x: Any, p: Any, w: Any, q: Any, rate: Optional[float], batch: int) -> None:
        self._perform("gradients")
        if rate is not None and batch == 1 and self.gradients_are_zero and SINKS in self.routines:
            self.runs.rate = rate
            self._perform(SINKS)
            return
        self._perform("sinks")
        if rate is not None:
            self.update(self._parameters, self._gradients, rate, batch)
            self.gradients_are_zero = True

    def leave(self, buffers: Any, own: Any) -> None:
        x, p, _, _, q = buffers
        x[:] = array("d", own[0].tobytes())
        self._give(p)
        self._give(q, self.away)
