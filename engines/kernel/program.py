"""A compiled graph, ready to run: its buffers, and what a caller can do with them."""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any, Callable, NamedTuple, Optional, Protocol, Union

from engines.api import NonFiniteLoss
from engines.arguments import finite, finite_rate, whole
from engines.arithmetic import check_arithmetic
from engines.columns import Column, Rows, check_labels, columns
from engines.kernel.buffers import Buffer

Doubles = MutableSequence[float]
Rate = Union[float, Callable[[int], float]]
"""A learning rate, or a schedule: the number of an update, counted from the start of the call, -> its rate."""

Buffers = tuple[Doubles, Doubles, Doubles, Doubles, Doubles]
"""x, p, w, y, q."""


class Stretch(NamedTuple):
    """A stretch of training: steps over rows from `first_row` on, which wrap around, an update after every `batch`."""

    columns: Sequence[Column]
    first_row: int
    steps: int
    batch: int
    taken: int
    """Steps since the last update."""
    rates: array[float]
    """One for each update that comes."""
    losses: array[float]
    """Of each step: to be filled."""


class Kernel(Protocol):
    """Compiled code. It owns no buffers: x holds inputs, p parameters, w what the passes share, y outputs, q gradients.

    Lengths and types are the caller's duty. `Program` checks them on each call, and no caller sees w.
    """

    def workspace(self) -> Doubles:
        """A new w, in the kind of buffer that this code likes best."""

    def set_input(self, x: Doubles, columns: Sequence[Column], row: int) -> None: ...
    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float: ...
    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        """Adds to q. Forward went before, over the same buffers."""

    def zero_grad(self, q: Doubles) -> None: ...
    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        """`p -= rate * q / batch`; then q is zero."""

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        """Take the steps; ends at the first loss that is not finite, before its backward pass. Gives how many were."""


class Program:
    """A graph that runs without its Values. The numbers are those of the graph it came from, until they are set.

    Buffers may be the caller's own: assign a writable, contiguous buffer of doubles to `parameters` or `gradients`.
    CPython then refuses to resize it; on PyPy, no other thread may do so during a call.

    One thread at a time: a call during another one raises RuntimeError, and so does a schedule that calls the program
    whose rate it gives. Whatever computes raises ChangedArithmetic where the processor's floating-point state would
    change the bits.
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        inputs: Sequence[float],
        parameters: Sequence[float],
        outputs: int,
        phases: Mapping[str, float],
        sizes: Mapping[str, float],
    ) -> None:
        self.phases = phases
        """Seconds by phase: `trace`, `lower`, `generate`, `compile`, `load`."""
        self.sizes = sizes
        """`tape_rows`, and where there are such things `source_bytes`, `object_bytes` and `looped_share`."""
        self._kernel = kernel
        self._x = Buffer("inputs", inputs)
        self._p = Buffer("parameters", parameters)
        self._w = kernel.workspace()
        self._y = Buffer("outputs", [0.0] * outputs)
        self._q = Buffer("gradients", [0.0] * len(parameters))
        self._alone = _Alone()
        self._ran_forward = False
        self._taken = 0

    @property
    def inputs(self) -> Doubles:
        """The row that the next pass sees."""
        return self._x.array  # type: ignore[no-any-return]

    @property
    def outputs(self) -> Doubles:
        """What the last forward pass gave, in the order of `compile`'s outputs."""
        return self._y.array  # type: ignore[no-any-return]

    @property
    def parameters(self) -> Doubles:
        """The parameters' data."""
        return self._p.array  # type: ignore[no-any-return]

    @parameters.setter
    def parameters(self, buffer: Any) -> None:
        self._assign(self._p, buffer)

    @property
    def gradients(self) -> Doubles:
        """The parameters' gradients, summed over the steps since the last update."""
        return self._q.array  # type: ignore[no-any-return]

    @gradients.setter
    def gradients(self, buffer: Any) -> None:
        self._assign(self._q, buffer)

    def _assign(self, place: Buffer, buffer: Any) -> None:
        with self._alone:
            place.assign(buffer, {self._x, self._p, self._y, self._q} - {place})
            self._ran_forward = False

    def set_input(self, row: Union[Rows, Sequence[float]]) -> None:
        """Take one row of inputs: a buffer of doubles, Columns that hold one row, or any sequence of numbers."""
        # A Column is a tuple itself.
        if isinstance(row, (list, tuple)) and not any(isinstance(part, Column) for part in (row, *row)):
            row = array("d", row)
        found = columns(row, self._x.length)  # type: ignore[arg-type]
        if found[0].rows != 1:
            raise ValueError(f"set_input takes one row, not {found[0].rows:,}\n  Hand many to `train`.")
        check_labels(found)
        with self._alone:
            check_arithmetic()
            self._kernel.set_input(self._x.ready(), found, 0)
            self._ran_forward = False

    def forward(self) -> float:
        """The loss of the row that was set; `outputs` has the rest."""
        with self._alone:
            check_arithmetic()
            loss = self._kernel.forward(self._x.ready(), self._p.ready(), self._w, self._y.ready())
            self._ran_forward = True
            return loss

    def backward(self) -> None:
        """Add this row's gradients to `gradients`. Raises RuntimeError where forward has not seen the row."""
        with self._alone:
            if not self._ran_forward:
                raise RuntimeError("backward before forward\n  Call `forward()` after each `set_input` or new buffer.")
            check_arithmetic()
            self._kernel.backward(self._x.ready(), self._p.ready(), self._w, self._q.ready())

    def zero_grad(self) -> None:
        """Forget the gradients."""
        with self._alone:
            self._kernel.zero_grad(self._q.ready())

    def update(self, rate: float, batch: int = 1) -> None:
        """`parameters -= rate * gradients / batch`; the gradients return to zero."""
        rate, batch = finite(rate, "the rate"), whole(batch, "batch", 1)
        with self._alone:
            check_arithmetic()
            self._kernel.update(self._p.ready(), self._q.ready(), rate, batch)
            self._ran_forward = False
            self._taken = 0

    def reset(self) -> None:
        """As before the first step, but for the parameters: no gradients, no partial batch."""
        with self._alone:
            self._kernel.zero_grad(self._q.ready())
            self._ran_forward = False
            self._taken = 0

    def train(
        self, rows: Rows, *, rate: Rate, batch: int = 1, steps: Optional[int] = None, first_row: int = 0
    ) -> array[float]:
        """Forward and backward over the rows, an update after every `batch` steps; the loss of each step.

        steps: as many as there are rows unless told; rows wrap around. A partial batch's gradients persist until the
        next call brings the rest. Rows must not share memory with `parameters` or `gradients`. Raises ValueError for a
        rate that is not finite and a class label beyond its column, before the first step, and NonFiniteLoss at the
        first loss that is not finite: its update is not applied.
        """
        # Numbers first: a caller's own class may do anything while it becomes one, even resize the rows.
        batch, first_row = whole(batch, "batch", 1), whole(first_row, "first_row", 0)
        steps = None if steps is None else whole(steps, "steps", 0)
        rate = rate if callable(rate) else finite(rate, "the rate")
        found = columns(rows, self._x.length)
        steps = found[0].rows if steps is None else steps
        first_row = whole(first_row, "first_row", 0, found[0].rows - 1)
        check_labels(found, first_row, steps)
        losses, failed = self.run(found, rate, batch, steps, first_row, update=0, source=rows)
        if failed is not None:
            raise NonFiniteLoss(len(losses), failed)
        return losses

    def run(
        self,
        rows: Sequence[Column],
        rate: Rate,
        batch: int,
        steps: int,
        first_row: int,
        update: int,
        source: Optional[Rows] = None,
    ) -> tuple[array[float], Optional[float]]:
        """`train`, for a trainer that has checked its columns and numbers: the finite losses, and the one after them.

        update: the next one's number. source: what a caller gave, of which the columns were made.
        """
        with self._alone:
            check_arithmetic()
            try:
                losses = array("d", bytes(8 * steps))
            except (MemoryError, OverflowError):
                raise ValueError(
                    f"there is no memory for the losses of {steps:,} steps\n  Train in several calls."
                ) from None
            count, waiting = rows[0].rows, self._taken % batch
            rates = _rates(rate, range(update, update + (waiting + steps) // batch))
            # Where exports don't pin them, a schedule may have resized the rows, and the old views would dangle.
            if callable(rate) and source is not None:
                rows = columns(source, self._x.length)
            if any(column.rows != count for column in rows):
                raise BufferError("rows changed their length during a call\n  Leave them alone while they are read.")
            buffers = (self._x.ready(), self._p.ready(), self._w, self._y.ready(), self._q.ready())
            stretch = Stretch(rows, first_row, steps, batch, waiting, rates, losses)
            done = self._kernel.train(buffers, stretch)
            self._ran_forward = False
            self._taken = (self._taken + done) % batch
            return losses[:done], losses[done] if done < steps else None


class _Alone:
    """Raises RuntimeError for whoever comes while someone is in. To wait could be to wait for oneself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                "this Program is running already: in another thread, or the schedule of its rates called it\n"
                "  Compile the graph once for each thread; let a schedule give rates only."
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _rates(rate: Rate, updates: range) -> array[float]:
    """The rates of those updates. Raises TypeError and ValueError for the first that is not a finite number."""
    if not callable(rate):
        return array("d", [finite(rate, "the rate")]) * len(updates)
    rates = [rate(update) for update in updates]
    # One sum in place of a check for each: it is finite only where all of them are.
    try:
        are_finite = math.isfinite(sum(rates))
    except (TypeError, OverflowError):
        are_finite = False
    return array("d", rates if are_finite else map(finite_rate, rates, updates))
