"""Machine code -> Kernel: NumPy copies between the caller's buffers and the workspace, machine code does the rest."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cache
from typing import Any

from zoomgrad.engines.columns import BYTES, DOUBLES, Column
from zoomgrad.engines.kernel.library import interface
from zoomgrad.engines.kernel.program import Buffers, Doubles, Stretch
from zoomgrad.engines.machine import target
from zoomgrad.engines.machine.memory import Memory, caller, is_under_perf, write_symbols
from zoomgrad.engines.machine.program import Code
from zoomgrad.engines.machine.target import Word
from zoomgrad.engines.rerolled.recover.loops import Access
from zoomgrad.engines.rerolled.step.language import Fact, Give, If, Perform, walk

ALIGNMENT = 64
"""A workspace starts at a multiple of these bytes, because a vector that crosses a cache line takes twice the time."""


class MachineKernel:
    """A Kernel over machine code."""

    def __init__(self, code: Code) -> None:
        import numpy as np

        self.np = np
        self.step = step = code.step
        self.memory = Memory(code.bytes, code.of_libm)
        if is_under_perf():
            write_symbols(self.memory.start, code.symbols, code.end)
        self._ffi = interface()
        self._functions = {name: caller(self.memory.start + at) for name, at in code.functions.items()}
        self._state = array("q", bytes(8 * len(Word)))
        self._words = np.frombuffer(self._state, np.int64)
        self._numbers = np.frombuffer(self._state, np.float64)
        loops = step.loops
        self._index, self._place = loops.indices_and_places()
        self._outputs = [output.base if isinstance(output, Access) else -1 for output in loops.outputs]
        self._constants = [0.0 if isinstance(output, Access) else output for output in loops.outputs]
        leave = step.programs.get("leave", ())
        self._gives_outputs = Give("outputs") in leave
        """Otherwise an output is a parameter, and each row gives its outputs before the update."""
        self._settle = [
            inner.routine
            for statement in leave
            if isinstance(statement, If) and statement.condition == Fact.DUE
            for inner in walk(statement.then)
            if isinstance(inner, Perform)
        ]
        self._workspaces: dict[int, Any] = {}

    def workspace(self) -> array[float]:
        return array("d", bytes(8 * (self.step.workspace + ALIGNMENT // 8)))

    def _aligned(self, w: Doubles) -> Any:
        """The aligned part of a workspace as an array, with the constants in place."""
        start = int(self._ffi.cast("uintptr_t", self._ffi.from_buffer(w)))
        first = -start % ALIGNMENT // 8
        view = self.np.frombuffer(w, self.np.float64)[first : first + self.step.workspace]
        k = self.step.loops.area("k").start
        view[k : k + len(self.step.loops.numbers)] = self.step.loops.numbers
        return view

    def _run(self, function: str, w: Any) -> None:
        self._functions[function](w, self._state)

    # --- passes ------------------------------------------------------------------------------------------------------

    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        view = self._aligned(w)
        view[: self.step.loops.inputs] = x
        view[self._place] = self._array(p)[self._index]
        self._list_every(view)
        self._run("run values", view)
        self._give_outputs(view, y)
        loss = self.step.loops.loss
        return float(view[loss.base]) if isinstance(loss, Access) else float(loss)  # type: ignore[arg-type]

    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        view, at = self._aligned(w), self._place + self.step.away
        gradients = self._array(q)
        view[at] = gradients[self._index]
        self._list_every(view)
        self._run("run gradients", view)
        loss = self.step.loops.loss
        if self.step.loops.has_parameter_as_loss and isinstance(loss, Access):
            view[loss.base + self.step.away] = 0.0  # the sink then sets it to 1
        self._run("run sinks", view)
        gradients[self._index] = view[at]

    def _list_every(self, view: Any) -> None:
        """List every input, as the passes for callers require."""
        if self.step.skips:
            first, stop = self.step.skips.inputs
            at = self.step.area("live").start
            view[at : at + 1].view(self.np.int64)[:] = stop - first
            view[at + 1 : at + 1 + (stop - first)].view(self.np.int32)[: stop - first] = range(stop - first)

    def _array(self, buffer: Any) -> Any:
        return self.np.asarray(memoryview(buffer))

    def _give_outputs(self, view: Any, y: Doubles) -> None:
        if self._outputs:
            outputs = view[self._outputs]
            for at, place in enumerate(self._outputs):
                if place < 0:
                    outputs[at] = self._constants[at]
            y[:] = array("d", outputs.tobytes())

    def set_input(self, x: Doubles, columns: Sequence[Column], row: int) -> None:
        x[:] = array("d", [value for column in columns for value in column.values(row)])

    def zero_grad(self, q: Doubles) -> None:
        self._array(q)[:] = 0.0

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        with self.np.errstate(all="ignore"):
            gradients = self._array(q)
            change = rate * gradients
            self._array(p)[:] -= change if batch == 1 else change / batch
            gradients[:] = 0.0

    # --- training ----------------------------------------------------------------------------------------------------

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        if not stretch.steps:
            return 0
        x, p, w, y, q = buffers
        view = self._aligned(w)
        parameters, gradients = self._array(p), self._array(q)
        view[self._place] = parameters[self._index]
        view[self._place + self.step.away] = gradients[self._index]
        alive = self._enter(stretch, p, y, q)
        if self.step.skips:
            self._list_every(view)
            with self.np.errstate(all="ignore"):
                start, stop = self.step.skips.weights
                self._numbers[Word.BOUND] = 1.0 + float((view[start:stop] ** 2).sum())
        self._run("train" if stretch.learns else "evaluate all", view)
        del alive
        if self._words[Word.DUE]:
            for routine in self._settle:
                self._run(f"run {routine}", view)
        x[:] = array("d", view[: self.step.loops.inputs].tobytes())
        if stretch.learns and self._gives_outputs:
            self._give_outputs(view, y)
        parameters[self._index] = view[self._place]
        gradients[self._index] = view[self._place + self.step.away]
        return int(self._words[Word.STEP])

    def _enter(self, stretch: Stretch, p: Doubles, y: Doubles, q: Doubles) -> list[Any]:
        """Fill in the state. Returns the buffers that must live as long as the code runs."""
        words, alive = self._words, []

        def address(buffer: Any, writable: bool = True) -> int:
            pointer = self._ffi.from_buffer("char[]", buffer, writable)
            alive.append(pointer)
            return int(self._ffi.cast("uintptr_t", pointer))

        columns = self.np.zeros((len(stretch.columns), len(target.Column)), self.np.int64)
        for described, column in zip(columns, stretch.columns):
            size = 8 * column.width if column.kind == DOUBLES else 1 if column.one_hot else column.width
            data = address(memoryview(column.data).cast("B"), False)
            described[: target.Column.DIVISOR] = data, column.width, column.kind, size
            described.view(self.np.float64)[target.Column.DIVISOR :] = (
                column.divisor,
                *(_inverse(column.divisor) if column.kind == BYTES else (0.0, 0.0)),
            )
        alive.append(columns)
        words[:] = 0
        words[Word.STEPS] = stretch.steps
        words[Word.ROWS] = stretch.columns[0].rows
        words[Word.ROW] = stretch.first_row
        words[Word.BATCH], words[Word.TAKEN] = stretch.batch, stretch.taken
        words[Word.RATES], words[Word.LOSSES] = address(stretch.rates), address(stretch.losses)
        words[Word.OUTPUTS], words[Word.OUTPUTS_APART] = address(y), 8 * stretch.y_step
        words[Word.COLUMNS], words[Word.COLUMN_COUNT] = columns.ctypes.data, len(columns)
        words[Word.PARAMETERS], words[Word.GRADIENTS] = address(p), address(q)
        self._numbers[Word.SIZE] = stretch.batch
        return alive


@cache
def _inverse(divisor: float) -> tuple[float, float]:
    """HIGH and LOW for a divisor: see `divide_bytes` in kernel/rows.h."""
    inverse = 1.0 / divisor
    high = 257.0 * inverse - (257.0 * inverse - inverse)
    low = (1.0 - high * divisor) / divisor
    are_sums = all(byte * high + byte * low == byte / divisor for byte in range(256))
    return (high, low) if are_sums else (0.0, 0.0)
