"""Step -> Kernel in NumPy: each run a few array operations over views of the workspace, each statement a function.

NumPy keeps the bits where each lane's terms are added one after the other: over the first axis of an array whose lanes
lie inside, or, for a single lane, by `cumsum`. Its own sums add in pairs, and its `exp`, `tanh` and powers are not
libm's; functions are Python's, one element at a time. Runs that skip zeros compute every term here: the list of inputs
is always complete.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from engines.columns import DOUBLES, Column
from engines.graph.expr import Apply, Expr, Leaf, Literal
from engines.kernel.program import Doubles
from engines.kernel.python_kernel import PythonKernel, Training
from engines.rerolled import step as steps
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Operand, Table
from engines.rerolled.step import Condition, Due, Place, Program, Run, Statement, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class NumpyKernel(PythonKernel):
    """A Kernel. It binds itself to the workspace that it is given, and keeps to it."""

    def __init__(self, step: Step) -> None:
        import numpy as np

        self.np = np
        super().__init__(step.workspace)
        self.step = step
        self._bound: Optional[_Bound] = None

    def workspace(self) -> Doubles:
        """An array: NumPy sees into it."""
        return array("d", bytes(8 * self._workspace))

    def _bind(self, w: Doubles) -> _Bound:
        if self._bound is None or self._bound.owner is not w:
            self._bound = _Bound(self.step, w)
        return self._bound

    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        bound = self._bind(w)
        bound.buffers = {"inputs": x, "parameters": p, "outputs": y}
        bound.run("forward")
        return bound.loss()

    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        bound = self._bind(w)
        bound.buffers = {"inputs": x, "parameters": p, "gradients": q}
        bound.run("backward")

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        with self.np.errstate(all="ignore"):
            _descend(_view(self.np, p), _view(self.np, q), rate, batch)

    def enter(self, t: Training) -> None:
        bound = self._bind(t.w)
        bound.training = t
        bound.buffers = {"inputs": t.x, "parameters": t.p, "outputs": t.y, "gradients": t.q}
        bound.begin()
        bound.run("enter")

    def turn(self, t: Training) -> bool:
        return self._bind(t.w).run("turn") is not _FAILED

    def leave(self, t: Training) -> None:
        bound = self._bind(t.w)
        bound.run("leave")
        bound.training = None
        bound.buffers = {}


Action = Callable[[], object]
"""A statement or a run, ready to go. Gives one of the two below where the section ends with it."""
_ENDED, _FAILED = "the turn is over", "a loss is not finite"


class _Bound:
    """The step over one workspace, as functions that take nothing."""

    def __init__(self, step: Step, w: Doubles) -> None:
        import numpy as np

        self.np = np
        self.owner = w
        self.step = step
        self.w: Array = _view(np, w)
        self.buffers: dict[str, Doubles] = {}
        """The caller's, while a call lasts."""
        self.training: Optional[Training] = None
        self.rate = 0.0
        self.row = 0
        """Which of the rows that were taken together is at work."""
        self.flags = dict.fromkeys(steps.FLAGS, False)
        self.is_updated = False
        loops = step.loops
        start = loops.area("k").start
        self.w[start : start + len(loops.numbers)] = loops.numbers
        self.parameters, self.gradients = (
            self.w[area.start : area.stop] for area in (loops.area("p"), loops.area("q"))
        )
        copies = [(_places(copy.parameter, copy.counts), _places(copy.place, copy.counts)) for copy in loops.copies]
        none = np.zeros(0, np.int64)
        self._index, self._place = (np.concatenate([none, *column]) for column in zip((none, none), *copies))
        """The parameters that the graph uses: the caller's index of each, and its place."""
        self.routines = {name: [self._run(run) for run in runs] for name, runs in step.routines.items()}
        self.sections = {name: self._program(program) for name, program in step.programs.items()}

    def begin(self) -> None:
        """Forget what turns of an earlier stretch kept."""
        self.flags.update(dict.fromkeys(steps.FLAGS, False))
        self.is_updated = False

    def run(self, section: str) -> object:
        """One section, once; gives what ended it."""
        with self.np.errstate(all="ignore"):
            return _in_turn(self.sections[section])

    def loss(self) -> float:
        return self._leaf(self.step.loops.loss)

    def _leaf(self, operand: Operand) -> float:
        if isinstance(operand, float):
            return operand
        assert isinstance(operand, Access)
        return float(self.w[operand.base])

    # --- statements --------------------------------------------------------------------------------------------------

    def _program(self, program: Program) -> list[Action]:
        return [self._statement(statement) for statement in program]

    def _statement(self, statement: Statement) -> Action:
        if isinstance(statement, steps.Take):
            return partial(self._take, statement.what)
        if isinstance(statement, steps.Give):
            return partial(self._give, statement.what)
        if isinstance(statement, steps.TakeRow):
            return partial(self._take_row, Place(0), 0)
        if isinstance(statement, steps.TakeRows):
            return partial(_in_turn, [partial(self._take_row, statement.to, ahead) for ahead in range(statement.rows)])
        if isinstance(statement, steps.Perform):
            return partial(_in_turn, self.routines[statement.routine])
        if isinstance(statement, steps.Guard):
            return partial(self._guard, self._program(statement.otherwise))
        if isinstance(statement, steps.Copy):
            return partial(self._copy, statement)
        if isinstance(statement, steps.Set):
            return partial(self.flags.__setitem__, statement.flag, statement.value)
        if isinstance(statement, steps.If):
            return partial(
                self._choose, statement.condition, self._program(statement.then), self._program(statement.otherwise)
            )
        if isinstance(statement, steps.EachRow):
            return partial(self._each_row, statement, self._program(statement.body))
        if isinstance(statement, steps.NextRate):
            return self._next_rate
        if isinstance(statement, steps.Update):
            return self._update
        if isinstance(statement, steps.EndTurn):
            return lambda: _ENDED
        return lambda: None  # what skipping needs

    def _take(self, what: str) -> None:
        buffer = self.buffers[what]
        if what == "inputs":
            self.w[: self.step.loops.inputs] = buffer
        else:
            away = self.step.away * (what == "gradients")
            self.w[self._place + away] = _view(self.np, buffer)[self._index]

    def _give(self, what: str) -> None:
        buffer = self.buffers[what]
        if what == "inputs":
            buffer[:] = array("d", self.w[: self.step.loops.inputs].tobytes())
        elif what == "outputs":
            buffer[:] = array("d", [self._leaf(output) for output in self.step.loops.outputs])
        else:
            away = self.step.away * (what == "gradients")
            _view(self.np, buffer)[self._index] = self.w[self._place + away]

    def _take_row(self, to: Place, ahead: int) -> None:
        assert self.training is not None
        columns = self.training.stretch.columns
        _read_row(self.np, self.w, to.base + ahead * to.per_row, columns, (self.training.row + ahead) % columns[0].rows)

    def _guard(self, otherwise: Sequence[Action]) -> object:
        assert self.training is not None
        if self.training.record(self.loss()):
            return None
        _in_turn(otherwise)
        return _FAILED

    def _next_rate(self) -> None:
        assert self.training is not None
        self.rate = next(self.training.rates)

    def _update(self) -> None:
        assert self.training is not None
        _descend(self.parameters, self.gradients, self.rate, self.training.stretch.batch)
        self.is_updated = True

    def _copy(self, copy: steps.Copy) -> None:
        to, source = (place.base + self.row * place.per_row for place in (copy.to, copy.source))
        self.w[to : to + copy.size] = self.w[source : source + copy.size]

    def _choose(self, condition: Condition, then: Sequence[Action], otherwise: Sequence[Action]) -> object:
        return _in_turn(then if self._holds(condition) else otherwise)

    def _each_row(self, statement: steps.EachRow, body: Sequence[Action]) -> object:
        present = self.row
        for row in range(present if statement.before else statement.rows):
            self.row = row
            ended = _in_turn(body)
            if ended:
                return ended
        self.row = present
        return None

    def _holds(self, condition: Condition) -> bool:
        if isinstance(condition, steps.Flag):
            return self.flags[condition]
        if isinstance(condition, steps.Not):
            return not self._holds(condition.condition)
        if isinstance(condition, steps.Both):
            return self._holds(condition.first) and self._holds(condition.second)
        t = self.training
        assert t is not None
        if isinstance(condition, steps.Alone):
            return t.stretch.batch == 1 and self.is_updated
        if isinstance(condition, steps.Fit):
            return min(t.stretch.steps - t.step, t.stretch.batch - t.taken) >= condition.rows
        if isinstance(condition, steps.BatchEnds):
            return t.batch_ends(condition.rows)
        if isinstance(condition, (steps.EveryInput, steps.NoZeros)):
            return True  # nothing is skipped
        assert isinstance(condition, steps.Unbounded)
        return False

    # --- runs --------------------------------------------------------------------------------------------------------

    def _run(self, run: Run) -> Action:
        np, loop = self.np, run.loop
        target = self._view(loop.target._replace(base=loop.target.base - self.step.away * run.in_place), loop.counts)
        adds = loop.phase == Phase.SINK and not run.in_place
        segments = [
            (
                _evaluator(np, segment.template),
                [self._operand(operand, loop.counts, segment.counts) for operand in segment.operands],
                segment.counts,
                np.empty((segment.terms + 1, loop.lanes)) if segment.counts else None,
            )
            for segment in loop.segments
        ]
        bring_up_to_date = self._meeting(run, run.due) if run.due else None

        def action() -> None:
            if bring_up_to_date:
                bring_up_to_date()
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
            if run.in_place:
                np.subtract(target, self.rate * total, out=target)
            else:
                target[...] = total

        return action

    def _meeting(self, run: Run, due: Due) -> Action:
        """The update that the run makes before it reads weights: here of all of them, then the run itself."""
        segment = run.loop.segments[due.segment]
        weights, x = segment.operands[due.slot], segment.operands[1 - due.slot]
        assert isinstance(weights, Access)
        assert isinstance(x, Access)
        places, before, factor, inputs = (
            self._view(access, run.loop.counts, segment.counts) for access in (weights, due.before, due.factor, x)
        )

        def bring_up_to_date() -> None:
            np = self.np
            np.subtract(places, self.rate * (before * factor), out=places)
            if due.keeps:
                before[...] = inputs

        return bring_up_to_date

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

    def _view(self, access: Access, lanes: Sequence[int], terms: Sequence[int] = ()) -> Array:
        strides: Any = [8 * stride for stride in (*access.terms, *access.lanes)]
        return self.np.lib.stride_tricks.as_strided(self.w[access.base :], (*terms, *lanes), strides)


def _in_turn(actions: Sequence[Action]) -> object:
    """One after the other, up to one that ends its section; gives what ended it."""
    for action in actions:
        ended = action()
        if ended:
            return ended
    return None


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


def _read_row(np: Any, w: Array, at: int, columns: Sequence[Column], row: int) -> None:
    """A row's inputs, from place `at` on."""
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
