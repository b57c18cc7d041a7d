"""Kernels in Python: passes over lists, and the training loop that they share."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any, Optional

from zoomgrad.engines.columns import Column
from zoomgrad.engines.kernel.program import Buffers, Doubles, Passes, Stretch


class PythonKernel:
    """A Kernel over two functions. Subclasses define `values` and `gradients` over lists.

    Buffers are copied to lists at the start of a call and back at its end, because reading an array creates an object
    each time. A subclass that stores its numbers elsewhere overrides `enter` and `leave`. Slices are assigned from an
    array, which works for a list, an array and a memoryview.
    """

    def __init__(self, workspace: int) -> None:
        self._workspace = workspace

    def workspace(self) -> Doubles:
        return [0.0] * self._workspace

    def values(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        """Fill y and return the loss."""
        raise NotImplementedError

    def gradients(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        """Add to q."""
        raise NotImplementedError

    def forward(self, x: Any, p: Any, w: Doubles, y: Any) -> float:
        outputs = y.tolist()
        loss = self.values(x.tolist(), p.tolist(), w, outputs)
        y[:] = array("d", outputs)
        return loss

    def backward(self, x: Any, p: Any, w: Doubles, q: Any) -> None:
        sums = q.tolist()
        self.gradients(x.tolist(), p.tolist(), w, sums)
        q[:] = array("d", sums)

    def bind(self, x: Any, p: Any, w: Any, y: Any, q: Any) -> Passes:
        return partial(self.forward, x, p, w, y), partial(self.backward, x, p, w, q)

    def set_input(self, x: Doubles, columns: Sequence[Column], row: int) -> None:
        x[:] = array("d", [value for column in columns for value in column.values(row)])

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        if batch == 1:  # a division by 1 changes nothing
            p[:] = array("d", [x - rate * g for x, g in zip(p, q)])
        else:
            p[:] = array("d", [x - rate * g / batch for x, g in zip(p, q)])
        q[:] = array("d", bytes(8 * len(q)))

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        columns, row, steps, batch, taken, rates, losses, learns, y_step = stretch
        if not steps:
            return 0
        x, p, w, y, q = buffers
        every_output, rows, rates_to_come = y, columns[0].rows, iter(rates)
        if y_step:
            buffers = x, p, w, array("d", bytes(8 * y_step)), q
        x, p, w, y, q = own = self.enter(buffers)
        try:
            for step in range(steps):
                self.set_input(x, columns, row)
                try:
                    loss = self.values(x, p, w, y)
                    if learns and math.isfinite(loss):
                        taken = (taken + 1) % batch
                        self.learn(x, p, w, q, None if taken else next(rates_to_come), batch)
                # C continues with infinity or NaN, but Python's operators raise, even when the loss is known.
                except (ArithmeticError, ValueError):
                    loss = math.nan
                losses[step] = loss
                if not math.isfinite(loss):
                    return step
                if y_step:
                    every_output[step * y_step : (step + 1) * y_step] = array("d", y)
                row = row + 1 if row + 1 < rows else 0
            return steps
        finally:
            self.leave(buffers, own)

    def enter(self, buffers: Any) -> Any:
        """Copy the caller's buffers to the ones that the steps use. The caller never sees w, so it is not copied."""
        x, p, w, y, q = buffers
        return x.tolist(), p.tolist(), w, y.tolist(), q.tolist()

    def learn(self, x: Any, p: Any, w: Any, q: Any, rate: Optional[float], batch: int) -> None:
        """Add the row's gradients, and update. rate: of the update; None if the row does not end its batch."""
        self.gradients(x, p, w, q)
        if rate is not None:
            self.update(p, q, rate, batch)

    def leave(self, buffers: Any, own: Any) -> None:
        """Copy parameters, gradients, the last row and its outputs to the caller's buffers."""
        for buffer, numbers in zip(buffers, own):
            if numbers is not buffer:
                buffer[:] = array("d", numbers)
