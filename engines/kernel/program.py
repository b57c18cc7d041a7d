"""A compiled graph with its buffers, ready to run."""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Mapping, MutableSequence, Sequence
from functools import partial
from typing import Any, Callable, NamedTuple, Optional, Protocol, Union

from engines.api import NonFiniteLoss
from engines.arguments import finite, finite_rate, whole
from engines.arithmetic import check_arithmetic
from engines.columns import Column, Rows, check_labels, columns
from engines.kernel.buffers import Buffer

Doubles = MutableSequence[float]
Rate = Union[float, Callable[[int], float]]
"""A learning rate, or a schedule that maps the number of an update, counted from the start of the call, to its rate."""

Buffers = tuple[Doubles, Doubles, Doubles, Doubles, Doubles]
"""x, p, w, y, q."""


class Stretch(NamedTuple):
    """A stretch of training: steps over rows that wrap around, with an update after every `batch` steps."""

    columns: Sequence[Column]
    first_row: int
    steps: int
    batch: int
    taken: int
    """Steps since the last update."""
    rates: array[float]
    """One for each update to come."""
    losses: array[float]
    """Output: one for each step."""
    learns: bool = True
    """False: run forward passes only, and change no parameter."""


class Bound(NamedTuple):
    """Buffers of a program, and its passes over them as functions without arguments."""

    inputs: Any
    parameters: Any
    gradients: Any
    forward: Callable[[], float]
    backward: Callable[[], None]
    """Adds to the gradients."""


class Kernel(Protocol):
    """Compiled code over the caller's buffers.

    x holds inputs, p parameters, w data shared by the passes, y outputs, q gradients. The caller guarantees lengths and
    types: `Program` checks them on each call, and its callers never see w.
    """

    def workspace(self) -> Doubles:
        """A new w, as the kind of buffer that suits this code best."""

    def set_input(self, x: Doubles, columns: Sequence[Column], row: int) -> None: ...
    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float: ...
    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        """Add to q. Requires a preceding forward over the same buffers."""

    def zero_grad(self, q: Doubles) -> None: ...
    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        """`p -= rate * q / batch`, then `q = 0`."""

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        """Take the steps, but stop at a loss that is not finite, before its backward pass.

        Returns the number of finite losses.
        """


class Program:
    """A graph that runs without its Values. Inputs and parameters start with the numbers of the traced graph.

    The caller may supply buffers: assign a writable, contiguous buffer of doubles to `parameters` or `gradients`.
    CPython then refuses to resize it; on PyPy, no other thread may resize it during a call.

    A program serves one thread at a time. A call during another one raises RuntimeError, and so does a call from the
    program's own rate schedule. Methods that compute raise ChangedArithmetic if the processor's floating-point state
    would change the bits.
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
        """`tape_rows`, and if they apply `source_bytes`, `object_bytes` and `looped_share`."""
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
    def late_variant(self) -> str:
        """The kernel's variant that the last `train` ran, if `compile` did not build it; else empty."""
        late: str = getattr(self._kernel, "late_variant", "")
        return late

    @property
    def late_seconds(self) -> Mapping[str, float]:
        """Seconds of each build that `train` had to make. `phases` does not include them."""
        seconds: Mapping[str, float] = getattr(self._kernel, "late_seconds", {})
        return seconds

    @property
    def inputs(self) -> Doubles:
        """The inputs of the next pass."""
        return self._x.array  # type: ignore[no-any-return]

    @property
    def outputs(self) -> Doubles:
        """Results of the last forward pass, in the order of `compile`'s outputs."""
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
        """Set one row of inputs: a buffer of doubles, Columns that hold one row, or any sequence of numbers."""
        # A Column is itself a tuple.
        if isinstance(row, (list, tuple)) and not any(isinstance(part, Column) for part in (row, *row)):
            row = array("d", row)
        found = columns(row, self._x.length)  # type: ignore[arg-type]
        if found[0].rows != 1:
            raise ValueError(f"set_input takes one row, not {found[0].rows:,}\n  Pass several rows to `train`.")
        check_labels(found)
        with self._alone:
            check_arithmetic()
            self._kernel.set_input(self._x.ready(), found, 0)
            self._ran_forward = False

    def forward(self) -> float:
        """Run the forward pass. Returns the loss; `outputs` holds the outputs."""
        with self._alone:
            check_arithmetic()
            loss = self._kernel.forward(self._x.ready(), self._p.ready(), self._w, self._y.ready())
            self._ran_forward = True
            return loss

    def backward(self) -> None:
        """Add this row's gradients to `gradients`. Raises RuntimeError unless `forward` ran on the row."""
        with self._alone:
            if not self._ran_forward:
                raise RuntimeError("backward before forward\n  Call `forward()` after each `set_input` or new buffer.")
            check_arithmetic()
            self._kernel.backward(self._x.ready(), self._p.ready(), self._w, self._q.ready())

    def bound(self) -> Bound:
        """The program's buffers and its passes over them, without the checks of `forward` and `backward`.

        For a caller whose graph is so small that these checks take most of the time. It must own the program, let one
        thread at a time use it, call `check_arithmetic`, and let `backward` follow a `forward` over the same numbers.
        """
        x, p, w, y, q = self._x.array, self._p.array, self._w, self._y.array, self._q.array
        bind = getattr(getattr(self._kernel.forward, "__self__", None), "bind", None)
        passes = bind(x, p, w, y, q) if bind else None
        forward, backward = passes or (
            partial(self._kernel.forward, x, p, w, y),
            partial(self._kernel.backward, x, p, w, q),
        )
        return Bound(x, p, q, forward, backward)

    def zero_grad(self) -> None:
        """Set the gradients to zero."""
        with self._alone:
            self._kernel.zero_grad(self._q.ready())

    def update(self, rate: float, batch: int = 1) -> None:
        """`parameters -= rate * gradients / batch`, then `gradients = 0`."""
        rate, batch = finite(rate, "the rate"), whole(batch, "batch", 1)
        with self._alone:
            check_arithmetic()
            self._kernel.update(self._p.ready(), self._q.ready(), rate, batch)
            self._ran_forward = False
            self._taken = 0

    def reset(self) -> None:
        """Discard gradients and any partial batch. The parameters stay."""
        with self._alone:
            self._kernel.zero_grad(self._q.ready())
            self._ran_forward = False
            self._taken = 0

    def train(
        self, rows: Rows, *, rate: Rate, batch: int = 1, steps: Optional[int] = None, first_row: int = 0
    ) -> array[float]:
        """Run forward and backward over the rows, with an update after every `batch` steps. Returns each step's loss.

        steps: by default, one for each row. Rows wrap around. The gradients of a partial batch persist until later
        calls complete it. Rows must not share memory with `parameters` or `gradients`. Before the first step, raises
        ValueError for a rate that is not finite or a class label beyond its column. Raises NonFiniteLoss at the first
        loss that is not finite, without applying that step's update. The first call with a larger batch may compile
        code for it (`late_seconds`), and then raises the errors of `compile`.
        """
        # Convert numbers first: the conversion may run the caller's code, which could even resize the rows.
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
        learns: bool = True,
    ) -> tuple[array[float], Optional[float]]:
        """`train` over checked columns and numbers. Returns the finite losses and the loss after them, if any.

        update: the number of the next update. source: the caller's object, if the columns must be checked again.
        learns: False to run forward passes only.
        """
        with self._alone:
            check_arithmetic()
            try:
                losses = array("d", bytes(8 * steps))
            except (MemoryError, OverflowError):
                raise ValueError(
                    f"there is not enough memory for the losses of {steps:,} steps\n  Train in several calls."
                ) from None
            count, waiting = rows[0].rows, self._taken % batch
            updates = (waiting + steps) // batch if learns else 0
            rates = _rates(rate, range(update, update + updates))
            # If exports don't pin the rows, the schedule may have resized them, and the old views would dangle.
            if callable(rate) and source is not None:
                rows = columns(source, self._x.length)
            if any(column.rows != count for column in rows):
                raise BufferError("rows changed their length during a call\n  Don't resize them while they are read.")
            buffers = (self._x.ready(), self._p.ready(), self._w, self._y.ready(), self._q.ready())
            stretch = Stretch(rows, first_row, steps, batch, waiting, rates, losses, learns)
            done = self._kernel.train(buffers, stretch)
            self._ran_forward = False
            if learns:
                self._taken = (self._taken + done) % batch
            return losses[:done], losses[done] if done < steps else None


class _Alone:
    """A lock that raises RuntimeError if it is taken. Waiting could deadlock: the holder may be the same thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                "this Program is already running: in another thread, or its rate schedule called it\n"
                "  Compile the graph once for each thread; let a schedule only compute rates."
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _rates(rate: Rate, updates: range) -> array[float]:
    """The rates of those updates. Raises TypeError or ValueError for the first that is not a finite number."""
    if not callable(rate):
        return array("d", [finite(rate, "the rate")]) * len(updates)
    rates = [rate(update) for update in updates]
    # One sum instead of a check for each rate: it is finite only if all of them are.
    try:
        are_finite = math.isfinite(sum(rates))
    except (TypeError, OverflowError):
        are_finite = False
    return array("d", rates if are_finite else map(finite_rate, rates, updates))
