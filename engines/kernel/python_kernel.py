"""Kernels in Python: passes over lists, and the training loop that they share."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

from zoomgrad.engines.columns import Column
from zoomgrad.engines.kernel.program import Buffers, Doubles, Stretch


class Training:
    """State of the training loop, which each turn reads and changes.

    Its fields and methods mirror `struct training` in `training.h`.
    """

    def __init__(self, buffers: Buffers, stretch: Stretch) -> None:
        x, p, w, y, q = buffers
        self._every_output = y
        if stretch.y_step:
            y = array("d", bytes(8 * stretch.y_step))
        self.stretch = stretch
        self.buffers = (x, p, w, y, q)
        """The caller's buffers. If `y` has room for the outputs of every step, y is a new buffer for a single step."""
        self.x: Any
        self.p: Any
        self.w: Any
        self.y: Any
        self.q: Any
        self.x, self.p, self.w, self.y, self.q = self.buffers
        self.step = 0
        """Number of recorded losses, all finite."""
        self.row = stretch.first_row
        """The next row."""
        self.taken = stretch.taken
        """Rows since the last update."""
        self.rates = iter(stretch.rates)
        """Rates of the updates to come."""
        self._rows = stretch.columns[0].rows

    def index(self, ahead: int = 0) -> int:
        """The number of the row `ahead` rows after the next one."""
        return (self.row + ahead) % self._rows

    def take_row(self, x: Any) -> None:
        """Read the next row into x."""
        read_row(x, self.stretch.columns, self.index())

    def record(self, loss: float) -> bool:
        """Record the loss of the current row. If it is finite, advance to the next row and return True."""
        self.stretch.losses[self.step] = loss
        if not math.isfinite(loss):
            return False
        self.step += 1
        self.row = self.row + 1 if self.row + 1 < self._rows else 0
        return True

    def keep_outputs(self, step: int) -> None:
        """Copy that step's outputs to the caller's buffer, if each step has its own there."""
        count = self.stretch.y_step
        if count:
            self._every_output[step * count : (step + 1) * count] = array("d", self.y)

    def batch_ends(self, rows: int) -> bool:
        """Count rows whose gradients were added. Returns whether they complete the batch."""
        self.taken += rows
        if self.taken < self.stretch.batch:
            return False
        self.taken = 0
        return True


# Slice assignment from an array works for a list, an array and a memoryview; x, p and q may be any of these.


def read_row(x: Doubles, columns: Sequence[Column], row: int) -> None:
    """Read a row of the columns into x."""
    x[:] = array("d", [value for column in columns for value in column.values(row)])


class PythonKernel:
    """A Kernel over two functions. Subclasses define `values` and `gradients` over lists.

    Buffers are copied to lists at the start of a call and back at its end, because reading an array creates an object
    each time. A subclass that stores its numbers elsewhere overrides `enter`, `turn`, `evaluate` and `leave`.
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

    def set_input(self, x: Doubles, columns: Sequence[Column], row: int) -> None:
        read_row(x, columns, row)

    def zero_grad(self, q: Doubles) -> None:
        q[:] = array("d", bytes(8 * len(q)))

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        if batch == 1:  # a division by 1 changes nothing
            p[:] = array("d", [x - rate * g for x, g in zip(p, q)])
        else:
            p[:] = array("d", [x - rate * g / batch for x, g in zip(p, q)])
        self.zero_grad(q)

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        t = Training(buffers, stretch)
        if not stretch.steps:
            return 0
        self.enter(t)
        try:
            while t.step < stretch.steps:
                step = t.step
                try:
                    if not (self.turn(t) if stretch.learns else self.evaluate(t)):
                        break
                    t.keep_outputs(step)
                # C continues with infinity or NaN, but Python's operators raise, even after the loss was recorded.
                except (ArithmeticError, ValueError):
                    t.step = step
                    t.record(math.nan)
                    break
        finally:
            self.leave(t)
        return t.step

    def enter(self, t: Training) -> None:
        """Copy parameters and gradients from the caller's buffers."""
        t.x, t.p, t.y, t.q = (buffer.tolist() for buffer in (t.x, t.p, t.y, t.q))

    def turn(self, t: Training) -> bool:
        """Train on the next row, or on several. Returns whether the losses are finite; if not, the training ends."""
        t.take_row(t.x)
        if not t.record(self.values(t.x, t.p, t.w, t.y)):
            return False
        self.gradients(t.x, t.p, t.w, t.q)
        if t.batch_ends(1):
            self.update(t.p, t.q, next(t.rates), t.stretch.batch)
        return True

    def evaluate(self, t: Training) -> bool:
        """Run the forward pass over the next row, and fill y. Returns whether its loss is finite."""
        t.take_row(t.x)
        return t.record(self.values(t.x, t.p, t.w, t.y))

    def leave(self, t: Training) -> None:
        """Copy parameters, gradients, the last row and its outputs to the caller's buffers."""
        x, p, _, y, q = t.buffers
        for buffer, numbers in ((x, t.x), (p, t.p), (y, t.y), (q, t.q)):
            buffer[:] = array("d", numbers)
