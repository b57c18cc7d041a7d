"""A compiled graph, ready to run: its buffers, and what a caller can do with them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any, Callable, NamedTuple, Optional, Protocol, Union

from engines.api import NonFiniteLoss
from engines.arithmetic import check_arithmetic
from engines.columns import Column, Rows, columns, view_of

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

    Lengths and types are the caller's duty; `Program` sees to them.
    """

    workspace: int
    """How many doubles w has."""

    def buffer(self, length: int) -> Doubles:
        """Zeros, in the kind of buffer that this code likes best."""

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
    Whatever computes raises ChangedArithmetic where the processor's floating-point state would change the bits.
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
        self._x = kernel.buffer(len(inputs))
        self._x[:] = array("d", inputs)
        self._p = kernel.buffer(len(parameters))
        self._p[:] = array("d", parameters)
        self._w = kernel.buffer(kernel.workspace)
        self._y = kernel.buffer(outputs)
        self._q = kernel.buffer(len(parameters))
        self._ran_forward = False
        self._taken = 0

    @property
    def inputs(self) -> Doubles:
        """The row that the next pass sees."""
        return self._x

    @property
    def outputs(self) -> Doubles:
        """What the last forward pass gave, in the order of `compile`'s outputs."""
        return self._y

    @property
    def parameters(self) -> Doubles:
        """The parameters' data."""
        return self._p

    @parameters.setter
    def parameters(self, buffer: Any) -> None:
        self._p = self._own("parameters", buffer, len(self._p))

    @property
    def gradients(self) -> Doubles:
        """The parameters' gradients, summed over the steps since the last update."""
        return self._q

    @gradients.setter
    def gradients(self, buffer: Any) -> None:
        self._q = self._own("gradients", buffer, len(self._q))

    def _own(self, name: str, buffer: Any, length: int) -> Doubles:
        view_of(buffer, name, "d", writable=True, length=length)
        self._ran_forward = False
        owned: Doubles = buffer
        return owned

    def set_input(self, row: Union[Rows, Sequence[float]]) -> None:
        """Take one row of inputs: a buffer of doubles, Columns that hold one row, or any sequence of numbers."""
        # A Column is a tuple itself.
        if isinstance(row, (list, tuple)) and not any(isinstance(part, Column) for part in (row, *row)):
            row = array("d", row)
        found = columns(row, len(self._x))  # type: ignore[arg-type]
        if found[0].rows != 1:
            raise ValueError(f"set_input takes one row, not {found[0].rows:,}\n  Hand many to `train`.")
        check_arithmetic()
        self._kernel.set_input(self._x, found, 0)
        self._ran_forward = False

    def forward(self) -> float:
        """The loss of the row that was set; `outputs` has the rest."""
        check_arithmetic()
        loss = self._kernel.forward(self._x, self._p, self._w, self._y)
        self._ran_forward = True
        return loss

    def backward(self) -> None:
        """Add this row's gradients to `gradients`. Raises RuntimeError where forward has not seen the row."""
        if not self._ran_forward:
            raise RuntimeError("backward before forward\n  Call `forward()` after each `set_input` or new buffer.")
        check_arithmetic()
        self._kernel.backward(self._x, self._p, self._w, self._q)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self._kernel.zero_grad(self._q)

    def update(self, rate: float, batch: int = 1) -> None:
        """`parameters -= rate * gradients / batch`; the gradients return to zero."""
        check_arithmetic()
        self._kernel.update(self._p, self._q, float(rate), _at_least_one(batch, "batch"))
        self._ran_forward = False
        self._taken = 0

    def reset(self) -> None:
        """As before the first step, but for the parameters: no gradients, no partial batch."""
        self.zero_grad()
        self._ran_forward = False
        self._taken = 0

    def train(
        self, rows: Rows, *, rate: Rate, batch: int = 1, steps: Optional[int] = None, first_row: int = 0
    ) -> array[float]:
        """Forward and backward over the rows, an update after every `batch` steps; the loss of each step.

        steps: as many as there are rows unless told; rows wrap around. A partial batch's gradients persist until the
        next call brings the rest. Raises NonFiniteLoss at the first loss that is not finite: its update is not applied.
        """
        losses, failed = self.run(columns(rows, len(self._x)), rate, batch, steps, first_row, update=0)
        if failed is not None:
            raise NonFiniteLoss(len(losses), failed)
        return losses

    def run(
        self, rows: Sequence[Column], rate: Rate, batch: int, steps: Optional[int], first_row: int, update: int
    ) -> tuple[array[float], Optional[float]]:
        """`train`, for a trainer: the finite losses, and the one after them that is not.

        update: the next one's number.
        """
        count = rows[0].rows
        steps = count if steps is None else steps
        if steps < 0 or not 0 <= first_row < count:
            raise ValueError(f"{steps} steps from row {first_row} on, of {count:,} rows")
        _at_least_one(batch, "batch")
        check_arithmetic()
        updates = range(update, update + (self._taken % batch + steps) // batch)
        rates = array("d", map(rate, updates) if callable(rate) else [float(rate)] * len(updates))
        losses = array("d", bytes(8 * steps))
        buffers = (self._x, self._p, self._w, self._y, self._q)
        stretch = Stretch(rows, first_row, steps, batch, self._taken % batch, rates, losses)
        done = self._kernel.train(buffers, stretch)
        self._ran_forward = False
        self._taken = (self._taken + done) % batch
        return losses[:done], losses[done] if done < steps else None


def _at_least_one(number: object, name: str) -> int:
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"{name} must be a whole number, one at least, not {number!r}")
    return number
