"""What kernels that run in Python share: their buffers are lists, and the training loop is Python's."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from engines.columns import Column
from engines.compiled.program import Buffers, Doubles, Stretch


class PythonKernel:
    """A Kernel over two functions. Subclasses define `forward` and `backward`."""

    def __init__(self, workspace: int) -> None:
        self.workspace = workspace

    def buffer(self, length: int) -> list[float]:
        """A list: reading it makes no object, as reading an array would."""
        return [0.0] * length

    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        raise NotImplementedError

    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        raise NotImplementedError

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

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        columns, first_row, steps, batch, taken, rates, losses = stretch
        x, p, w, y, q = buffers
        rows = columns[0].rows
        rate = iter(rates)
        for step in range(steps):
            self.set_input(x, columns, (first_row + step) % rows)
            try:
                losses[step] = self.forward(x, p, w, y)
                if not math.isfinite(losses[step]):
                    return step
                self.backward(x, p, w, q)
            except (ArithmeticError, ValueError):  # where C goes on with infinity or NaN, Python's operators raise
                losses[step] = math.nan
                return step
            taken += 1
            if taken % batch == 0:
                self.update(p, q, next(rate), batch)
        return steps
