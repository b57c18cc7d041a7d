"""What kernels that run in Python share: they compute over lists, and the training loop is Python's."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

from engines.columns import Column
from engines.kernel.program import Doubles, Stretch


class PythonKernel:
    """A Kernel over two functions. Subclasses define `values` and `gradients`, over lists.

    Reading a list makes no object, as reading an array would: buffers are copied at the start of a call and its end.
    """

    def __init__(self, workspace: int) -> None:
        self._workspace = workspace

    def workspace(self) -> Doubles:
        return [0.0] * self._workspace

    def values(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        """Fill y; gives the loss."""
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

    def set_input(self, x: Doubles, columns: Sequence[Column], row: int) -> None:
        x[:] = array("d", [value for column in columns for value in column.values(row)])

    # A slice of a list, an array or a memoryview takes an array: parameters and gradients may be the caller's.

    def zero_grad(self, q: Doubles) -> None:
        q[:] = array("d", bytes(8 * len(q)))

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        if batch == 1:  # a division by 1 changes nothing
            p[:] = array("d", [x - rate * g for x, g in zip(p, q)])
        else:
            p[:] = array("d", [x - rate * g / batch for x, g in zip(p, q)])
        self.zero_grad(q)

    def train(self, buffers: Any, stretch: Stretch) -> int:
        columns, first_row, steps, batch, taken, rates, losses = stretch
        x, p, w, y, q = buffers
        theirs = (x, p, y, q)
        x, p, y, q = ours = [buffer.tolist() for buffer in theirs]
        rows = columns[0].rows
        rate = iter(rates)
        try:
            for step in range(steps):
                self.set_input(x, columns, (first_row + step) % rows)
                try:
                    losses[step] = self.values(x, p, w, y)
                    if not math.isfinite(losses[step]):
                        return step
                    self.gradients(x, p, w, q)
                except (ArithmeticError, ValueError):  # where C goes on with infinity or NaN, Python's operators raise
                    losses[step] = math.nan
                    return step
                taken += 1
                if taken % batch == 0:
                    self.update(p, q, next(rate), batch)
            return steps
        finally:
            for buffer, numbers in zip(theirs, ours):
                buffer[:] = array("d", numbers)
