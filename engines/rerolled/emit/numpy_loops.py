"""Loops -> Kernel in NumPy: each loop a few array operations over strided views of the workspace.

NumPy keeps the bits where each lane's terms are added one after the other: over the first axis of an array whose lanes
lie inside, or, for a single lane, by `cumsum`. Its own sums add in pairs, and its `exp`, `tanh` and powers are not
libm's; functions are Python's, one element at a time.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

from engines.columns import DOUBLES, Column
from engines.graph.expr import Apply, Expr, Leaf, Literal
from engines.kernel.program import Buffers, Doubles, Stretch
from engines.kernel.python_kernel import PythonKernel
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Loop, Loops, Operand, Table, updates_in_place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class NumpyLoops(PythonKernel):
    """A Kernel. It binds itself to the workspace that it is given, and keeps to it."""

    def __init__(self, loops: Loops) -> None:
        import numpy as np

        self.np = np
        super().__init__(loops.workspace)
        self.loops = loops
        self._in_place = updates_in_place(loops)
        copies = [(_places(copy.parameter, copy.counts), _places(copy.place, copy.counts)) for copy in loops.copies]
        none = np.zeros(0, np.int64)
        self._index, self._place = (np.concatenate([none, *column]) for column in zip((none, none), *copies))
        """The parameters that the graph uses: the caller's index of each, and its place."""
        self._away = loops.area("q").start - loops.area("p").start
        self._bound: Optional[_Bound] = None

    def workspace(self) -> Doubles:
        """An array: NumPy sees into it."""
        return array("d", bytes(8 * self._workspace))

    def _bind(self, w: Doubles) -> _Bound:
        if self._bound is None or self._bound.owner is not w:
            self._bound = _Bound(self.loops, w, self._in_place)
        return self._bound

    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        bound = self._bind(w)
        bound.w[: self.loops.inputs] = x
        self._take(bound, p, 0)
        loss = bound.forward()
        bound.give_outputs(y)
        return loss

    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        bound = self._bind(w)
        self._take(bound, q, self._away)
        bound.run(bound.gradients, bound.sinks)
        self._give(bound, q, self._away)

    def _take(self, bound: _Bound, buffer: Doubles, away: int) -> None:
        bound.w[self._place + away] = _view(self.np, buffer)[self._index]

    def _give(self, bound: _Bound, buffer: Doubles, away: int) -> None:
        _view(self.np, buffer)[self._index] = bound.w[self._place + away]

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        with self.np.errstate(all="ignore"):
            _descend(_view(self.np, p), _view(self.np, q), rate, batch)

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        columns, first_row, steps, batch, taken, rates, losses = stretch
        x, p, w, y, q = buffers
        bound, loops, np = self._bind(w), self.loops, self.np
        parameters, gradients = (bound.w[area.start : area.stop] for area in (loops.area("p"), loops.area("q")))
        self._take(bound, p, 0)
        self._take(bound, q, self._away)
        rows, rate, fresh, step = columns[0].rows, iter(rates), False, 0
        with np.errstate(all="ignore"):
            while step < steps:
                _take_row(np, bound.w, columns, (first_row + step) % rows)
                try:
                    losses[step] = bound.forward()
                    if not math.isfinite(losses[step]):
                        break
                    bound.run(bound.gradients)
                except (ArithmeticError, ValueError):  # where C goes on with infinity or NaN, Python's functions raise
                    losses[step] = math.nan
                    break
                step += 1
                taken += 1
                if batch == 1 and fresh and self._in_place:
                    bound.rate = next(rate)
                    bound.run(bound.descent)
                    continue
                bound.run(bound.sinks)
                fresh = taken % batch == 0
                if fresh:
                    _descend(parameters, gradients, next(rate), batch)
        x[:] = array("d", bound.w[: loops.inputs].tobytes())
        self._give(bound, p, 0)
        self._give(bound, q, self._away)
        bound.give_outputs(y)
        return step


Step = Callable[[], None]


class _Bound:
    """The loops over one workspace, as functions that take nothing."""

    def __init__(self, loops: Loops, w: Doubles, in_place: bool) -> None:
        import numpy as np

        self.np = np
        self.owner = w
        self.w: Array = _view(np, w)
        self.away = loops.area("q").start - loops.area("p").start
        self.rate = 0.0
        start = loops.area("k").start
        self.w[start : start + len(loops.numbers)] = loops.numbers
        of_phase = {phase: [loop for loop in loops.loops if loop.phase == phase] for phase in Phase}
        self.values, self.gradients, self.sinks = ([self._step(loop) for loop in of_phase[phase]] for phase in Phase)
        self.descent = [self._step(loop, in_place=True) for loop in of_phase[Phase.SINK]] if in_place else []
        self.loss = loops.loss
        self.outputs = loops.outputs

    def run(self, *phases: Sequence[Step]) -> None:
        with self.np.errstate(all="ignore"):
            for steps in phases:
                for step in steps:
                    step()

    def forward(self) -> float:
        """The values, and among them the loss."""
        self.run(self.values)
        return self._leaf(self.loss)

    def give_outputs(self, y: Doubles) -> None:
        y[:] = array("d", [self._leaf(output) for output in self.outputs])

    def _leaf(self, operand: Operand) -> float:
        if isinstance(operand, float):
            return operand
        assert isinstance(operand, Access)
        return float(self.w[operand.base])

    def _step(self, loop: Loop, *, in_place: bool = False) -> Step:
        np = self.np
        target = self._view(loop.target._replace(base=loop.target.base - self.away * in_place), loop.counts, ())
        adds = loop.phase == Phase.SINK and not in_place
        segments = [
            (
                _evaluator(np, segment.template),
                [self._operand(operand, loop.counts, segment.counts) for operand in segment.operands],
                segment.counts,
                np.empty((segment.terms + 1, loop.lanes)) if segment.counts else None,
            )
            for segment in loop.segments
        ]

        def step() -> None:
            total: Any = target if adds else None
            for evaluate, operands, counts, rows in segments:
                terms = evaluate(operands)
                if rows is None:
                    total = terms if total is None else total + terms
                    continue
                # What there is already comes first, then the terms, row by row.
                rows[0] = 0.0 if total is None else np.broadcast_to(total, loop.counts).reshape(-1)
                rows[1:] = np.broadcast_to(terms, (*counts, *loop.counts)).reshape(len(rows) - 1, -1)
                total = (np.add.reduce(rows, axis=0) if loop.lanes > 1 else np.cumsum(rows)[-1]).reshape(loop.counts)
            if in_place:
                np.subtract(target, self.rate * total, out=target)
            else:
                target[...] = total

        return step

    def _operand(self, operand: Operand, lanes: Sequence[int], terms: Sequence[int]) -> Any:
        """A view of shape (terms…, lanes…), which moves with the workspace; a number; or what fetches from a table."""
        if isinstance(operand, float):
            return operand
        if isinstance(operand, Table):
            places = operand.places.T.reshape((*terms, *lanes))
            return lambda: self.w[places]
        if any(isinstance(stride, tuple) for stride in (*operand.lanes, *operand.terms)):
            places = _places(Access(operand.base, (*operand.terms, *operand.lanes)), (*terms, *lanes)).reshape(
                (*terms, *lanes)
            )
            return lambda: self.w[places]
        return self._view(operand, lanes, terms)

    def _view(self, access: Access, lanes: Sequence[int], terms: Sequence[int]) -> Array:
        strides: Any = [8 * stride for stride in (*access.terms, *access.lanes)]
        return self.np.lib.stride_tricks.as_strided(self.w[access.base :], (*terms, *lanes), strides)


def _view(np: Any, buffer: Any) -> Array:
    """The doubles of a buffer, to be read and written."""
    view: Array = np.asarray(memoryview(buffer))
    return view


def _evaluator(np: Any, expr: Expr) -> Callable[[Sequence[Any]], Any]:
    """A function from operands to the expression over them, element by element."""
    if isinstance(expr, Leaf):
        slot = int(expr.name)
        return lambda operands: operands[slot]() if callable(operands[slot]) else operands[slot]
    if isinstance(expr, Literal):
        return lambda operands: expr.number
    assert isinstance(expr, Apply)
    function = _function(np, expr.primitive)
    parts = [_evaluator(np, operand) for operand in expr.operands]
    return lambda operands: function(*(part(operands) for part in parts))


def _function(np: Any, primitive: str) -> Callable[..., Any]:
    names = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "less": "less", "greater": "greater"}
    if primitive in names or primitive == "where":
        made: Callable[..., Any] = getattr(np, names.get(primitive, "where"))
        return made
    return lambda *operands: _each(np, getattr(math, primitive), operands)


def _each(np: Any, function: Callable[..., float], operands: Sequence[Any]) -> Any:
    """A function of Python's over broadcast operands."""
    shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands))
    columns = [np.broadcast_to(operand, shape).reshape(-1).tolist() for operand in operands]
    return np.array(list(map(function, *columns))).reshape(shape)


def _descend(parameters: Array, gradients: Array, rate: float, batch: int) -> None:
    step = rate * gradients
    parameters -= step if batch == 1 else step / batch
    gradients[:] = 0.0


def _take_row(np: Any, w: Array, columns: Sequence[Column], row: int) -> None:
    at = 0
    for column in columns:
        if column.one_hot:
            w[at : at + column.width] = 0.0
            if column.data[row] < column.width:
                w[at + column.data[row]] = 1.0
        else:
            count, kind = column.width, np.float64 if column.kind == DOUBLES else np.uint8
            cells = np.frombuffer(column.data, kind, count, row * count * np.dtype(kind).itemsize)
            w[at : at + count] = cells if column.kind == DOUBLES else cells / column.divisor
        at += column.width


def _places(access: Access, counts: Sequence[int]) -> Any:
    import numpy as np

    places = np.array([access.base])
    for count, stride in zip(counts, access.lanes):
        offsets = stride * np.arange(count) if isinstance(stride, int) else np.array(stride)
        places = (places[:, None] + offsets).reshape(-1)
    return places
