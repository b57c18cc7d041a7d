"""A compiled graph with its buffers, ready to run."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Mapping, MutableSequence, Sequence
from functools import cached_property
from numbers import Real
from typing import Callable, NamedTuple, Optional, Protocol, Union

from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.arguments import Rate, finite, finite_rates, whole
from zoomgrad.engines.columns import WITHOUT_INPUTS, Column, Rows, check_labels, columns, described
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.graph.arithmetic import check_arithmetic
from zoomgrad.engines.graph.tape import PARAMETER, Tape
from zoomgrad.engines.kernel.buffers import Buffer

Doubles = MutableSequence[float]
Buffers = tuple[Doubles, Doubles, Doubles, Doubles, Doubles]
"""x, p, w, y, q."""
Passes = tuple[Callable[[], float], Callable[[], None]]
"""`forward` and `backward` as functions without arguments."""


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
    y_step: int = 0
    """Distance from a step's outputs to the next one's, if y holds those of every step of a stretch that does not
    learn; 0 if it holds those of the last one."""


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

    def bind(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles, q: Doubles) -> Passes:
        """The passes over these buffers, which they keep."""

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        """`p -= rate * q / batch`, then `q = 0`."""

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        """Take the steps, but stop before a non-finite loss's backward pass. Returns the number of finite losses."""


class Program:
    """A graph that runs without its Values. Inputs and parameters start with the numbers of the traced graph.

    A program serves one thread at a time. A call during another one raises RuntimeError, and so does a call from the
    program's own rate schedule. Methods that compute raise ChangedArithmetic if the processor's floating-point state
    would change the bits.
    """

    def __init__(
        self,
        kernel: Kernel,
        kernel_for: Optional[Callable[[int], Kernel]] = None,
        *,
        inputs: Sequence[float],
        parameters: Sequence[float],
        outputs: int,
        clock: Clock,
        tape: Optional[Tape] = None,
    ) -> None:
        """kernel_for: the kernel to train with that batch, which may be built at the first call. All have one workspace
        and the same bits. Calls other than training go to `kernel`, and so do forward passes.
        """
        self.phases: Mapping[str, float] = clock.phases
        """Seconds by phase: `trace`, `lower`, `generate`, `compile`, `load`."""
        self.sizes: Mapping[str, float] = clock.sizes
        """`tape_rows`, and if they apply `source_bytes`, `object_bytes` and `looped_share`."""
        self._kernel, self._kernel_for = kernel, kernel_for or (lambda batch: kernel)
        self._x = Buffer("inputs", inputs)
        self._p = Buffer("parameters", parameters)
        self._w = kernel.workspace()
        self._y = Buffer("outputs", array("d", [0.0]) * outputs)
        self._q = Buffer("gradients", array("d", [0.0]) * len(parameters))
        self._last = array("d", inputs)
        """The traced graph's inputs, for rows that leave some out."""
        self._alone = Alone("Program", "Compile the graph once for each thread")
        self._ran_forward = False
        self._taken = 0
        self.tape = tape
        """None unless the program was compiled from a graph."""

    @property
    def inputs(self) -> Doubles:
        """The inputs of the next pass."""
        return self._x.array

    @property
    def outputs(self) -> Doubles:
        """Results of the last forward pass, in the order of `compile`'s outputs."""
        return self._y.array

    @property
    def parameters(self) -> Doubles:
        return self._p.array

    @property
    def gradients(self) -> Doubles:
        """The parameters' gradients, summed over the steps since the last update."""
        return self._q.array

    def set_input(self, row: Union[Rows, Sequence[float]]) -> None:
        """Set one row of inputs: a list of numbers, or one row in any form that `train` takes."""
        is_numbers = isinstance(row, (list, tuple)) and isinstance(next(iter(row), 0.0), Real)
        parts = columns([row] if is_numbers else row, self._x.length)
        if parts[0].rows != 1:
            raise ValueError(f"set_input takes one row, not {parts[0].rows:,}\n  Pass several rows to `train`.")
        check_labels(parts)
        with self._alone:
            self._kernel.set_input(self._x.ready(), parts, 0)
            self._ran_forward = False

    def forward(self) -> float:
        """Run the forward pass. Returns the loss; `outputs` holds the outputs."""
        with self._alone:
            loss = self._kernel.forward(self._x.ready(), self._p.ready(), self._w, self._y.ready())
            self._ran_forward = True
            return loss

    def backward(self) -> None:
        """Add this row's gradients to `gradients`. Raises RuntimeError unless `forward` ran on the row."""
        with self._alone:
            if not self._ran_forward:
                raise RuntimeError("backward before forward\n  Call `forward()` after each `set_input`.")
            self._kernel.backward(self._x.ready(), self._p.ready(), self._w, self._q.ready())

    def bound(self) -> tuple[Doubles, Doubles, Doubles, Callable[[], float], Callable[[], None]]:
        """Inputs, parameters, gradients, and both passes over them, without the checks of `forward` and `backward`.

        For a caller whose graph is so small that these checks take most of the time. It must own the program, let one
        thread at a time use it, call `check_arithmetic`, and let `backward`, which adds to the gradients, follow a
        `forward` over the same numbers.
        """
        x, p, q = self._x.array, self._p.array, self._q.array
        return x, p, q, *self._kernel.bind(x, p, self._w, self._y.array, q)

    def zero_grad(self) -> None:
        """Set the gradients to zero, which also discards a partial batch."""
        with self._alone:
            self._q.ready()[:] = array("d", bytes(8 * self._q.length))
            self._taken = 0

    def update(self, rate: float, batch: int = 1) -> None:
        """`parameters -= rate * gradients / batch`, then `gradients = 0`."""
        rate, batch = finite(rate, "the rate"), whole(batch, "batch", 1)
        with self._alone:
            self._kernel.update(self._p.ready(), self._q.ready(), rate, batch)
            self._ran_forward = False
            self._taken = 0

    def train(
        self,
        rows: Optional[Rows] = None,
        *,
        rate: Rate,
        batch: int = 1,
        steps: Optional[int] = None,
        first_row: int = 0,
    ) -> array[float]:
        """Run forward and backward over the rows, with an update after every `batch` steps. Returns each step's loss.

        rows: see `engines.columns.Rows`; none if the program has no inputs, which then needs `steps`. steps: by
        default, one for each row. Rows wrap around. The gradients of a partial batch persist until later calls complete
        it. Before the first step, raises ValueError for rows that share memory with a buffer of the program, a rate
        that is not finite or a class label beyond its column. Raises NonFiniteLoss at the first loss that is not
        finite, without applying that step's update. The first call with a larger batch may compile code for it,
        and then raises the errors of `compile`.
        """
        # Convert numbers first: the conversion may run the caller's code, which could even resize the rows.
        batch = whole(batch, "batch", 1)
        rate = rate if callable(rate) else finite(rate, "the rate")
        source, parts, first_row, steps = self._taken_from(rows, first_row, steps)
        losses = array("d")
        self.run(losses, parts, rate, batch, steps, first_row, update=0, source=source)
        return losses

    def accumulate(self, rows: Optional[Rows] = None, first_row: int = 0, steps: Optional[int] = None) -> array[float]:
        """Run forward and backward over the rows, and add up their gradients. Returns each step's loss.

        The same as `set_input`, `forward` and `backward` for each row, in one call and with the same bits: no parameter
        changes, and a partial batch of `train` is neither continued nor discarded. Set the gradients to zero first, by
        `zero_grad`, unless they are to be added to. The arguments and errors are those of `train`. At a loss that is
        not finite, the gradients of the steps before it have been added. The first call may compile code for many rows.
        """
        _, parts, first_row, steps = self._taken_from(rows, first_row, steps)
        losses = array("d")
        # The batch is longer than the call, so no update comes.
        self.run(losses, parts, 0.0, steps + 1, steps, first_row, update=0, counts=False)
        return losses

    def predict(
        self, rows: Optional[Rows] = None, first_row: int = 0, steps: Optional[int] = None
    ) -> list[array[float]]:
        """The outputs of each row. Changes nothing, except that `backward` needs another `forward` first.

        rows: as in `train`, or with fewer inputs: a row of a matrix, a list or Columns may end before the first input
        that no output depends on, such as a target. steps: by default, one for each row. Rows wrap around. The loss is
        not used, so it need not be finite, but engines in Python raise its ArithmeticError or ValueError, such as that
        of `log(0)`. Raises ValueError if `compile` was given no outputs.
        """
        if not self._y.length:
            raise ValueError("the program has no outputs\n  Name them: `compile(…, outputs=[…])`.")
        _, parts, first_row, steps = self._taken_from(rows, first_row, steps, self._features)
        count, width = parts[0].rows, self._y.length
        rest = self._last[sum(column.width for column in parts) :]
        if rest:  # no output depends on them, so the traced graph's numbers will do
            parts = (*parts, Column(memoryview(rest * count), len(rest)))
        outputs, losses = array("d", [0.0]) * (steps * width), array("d", [0.0]) * steps
        with self._alone:
            self._ran_forward = False
            # The buffers of the caller's own passes stay as they are.
            x, p, q = array("d", self._x.ready()), self._p.ready(), self._q.ready()
            stretch = Stretch(parts, first_row, steps, 1, 0, array("d"), losses, learns=False, y_step=width)
            done = self._kernel.train((x, p, self._w, outputs, q), stretch)
            y = array("d", bytes(8 * width))
            for step in range(done, steps):  # from the first loss that is not finite
                self._kernel.set_input(x, parts, (first_row + step) % count)
                self._kernel.forward(x, p, self._w, y)
                outputs[step * width : (step + 1) * width] = y
        return [outputs[start : start + width] for start in range(0, len(outputs), width)]

    @cached_property
    def _features(self) -> int:
        """How many of the first inputs the outputs depend on. All, if the program has no tape."""
        if self.tape is None:
            return self._x.length
        return 1 + max(self.tape.read_by_outputs(), default=-1)

    @cached_property
    def _unused(self) -> list[int]:
        """The parameters that the graph does not use, and recovered loops do not update.

        The caller may have set their gradients, which the first update applies. All other updates find 0.0.
        """
        if self.tape is None or self.tape.ops.count(PARAMETER) == self.tape.parameters:
            return []
        used = {self.tape.index[row] for row in self.tape.rows_of(PARAMETER)}
        return [index for index in range(self.tape.parameters) if index not in used]

    def _taken_from(
        self, rows: Optional[Rows], first_row: int, steps: Optional[int], fewer: Optional[int] = None
    ) -> tuple[tuple[Column, ...], tuple[Column, ...], int, int]:
        """The caller's rows as Columns, then checked, the checked first row, and the checked number of steps."""
        first_row = whole(first_row, "first_row", 0)
        steps = None if steps is None else whole(steps, "steps", 0)
        if rows is None or (not self._x.length and isinstance(rows, (list, tuple)) and not rows):
            if self._x.length:
                raise TypeError(f"the program has {self._x.length:,} inputs, so it needs rows\n  Pass them first.")
            if steps is None:
                raise TypeError("a program without inputs has no rows to count\n  Pass `steps`.")
            return WITHOUT_INPUTS, WITHOUT_INPUTS, whole(first_row, "first_row", 0, 0), steps
        source = described(rows, self._x.length, fewer)
        parts = columns(source, self._x.length, fewer)
        steps = parts[0].rows if steps is None else steps
        first_row = whole(first_row, "first_row", 0, parts[0].rows - 1)
        check_labels(parts, first_row, steps)
        for view in (memoryview(column.data) for column in parts):
            for place in (self._x, self._p, self._y, self._q):
                if place.overlaps(view):
                    raise ValueError(f"rows must not share memory with the program's {place.name}\n  Copy them first.")
        return source, parts, first_row, steps

    def run(
        self,
        losses: array[float],
        rows: Sequence[Column],
        rate: Rate,
        batch: int,
        steps: int,
        first_row: int,
        update: int,
        source: Optional[Rows] = None,
        learns: bool = True,
        counts: bool = True,
    ) -> None:
        """`train` over checked columns and numbers. Adds to the losses, and raises NonFiniteLoss with their number.

        update: the number of the next update. source: the caller's object, if the columns must be checked again.
        learns: False to run forward passes only. counts: False for steps that belong to no batch.
        """
        with self._alone:
            each_loss = array("d", [0.0]) * steps
            count, waiting = rows[0].rows, self._taken % batch if counts else 0
            updates = (waiting + steps) // batch if learns else 0
            rates = finite_rates(rate, range(update, update + updates))
            # If exports don't pin the rows, the schedule may have resized them, and the old views would dangle.
            if callable(rate) and source is not None and self._x.length:
                rows = columns(source, self._x.length)
            if any(column.rows != count for column in rows):
                raise BufferError("rows changed their length during a call\n  Don't resize them while they are read.")
            buffers = (self._x.ready(), self._p.ready(), self._w, self._y.ready(), self._q.ready())
            stretch = Stretch(rows, first_row, steps, batch, waiting, rates, each_loss, learns)
            kernel = self._kernel_for(batch) if learns and steps else self._kernel
            done = kernel.train(buffers, stretch)
            self._ran_forward = False
            if learns and waiting + done >= batch:
                for index in self._unused:
                    self._p.array[index] -= rates[0] * self._q.array[index] / batch
                    self._q.array[index] = 0.0
            if learns and counts:
                self._taken = (self._taken + done) % batch
            losses.extend(each_loss[:done])
            if done < steps:
                raise NonFiniteLoss(len(losses), each_loss[done])


class Alone:
    """A lock for computing. Raises ChangedArithmetic if the bits would change, and RuntimeError if the lock is taken.

    Waiting could deadlock: the holder may be the same thread.
    """

    def __init__(self, what: str, remedy: str) -> None:
        self._lock = threading.Lock()
        self._what, self._remedy = what, remedy

    def __enter__(self) -> None:
        check_arithmetic()
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"this {self._what} is already running: in another thread, or its rate schedule called it\n"
                f"  {self._remedy}; let a schedule only compute rates."
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()
