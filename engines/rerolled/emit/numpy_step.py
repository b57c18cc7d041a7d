"""Step -> Kernel in NumPy: each statement becomes a function without arguments, each run a few array operations.

This back end skips nothing: its list of inputs is always complete, which the step form allows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Optional

from zoomgrad.engines.columns import DOUBLES, Column
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.kernel.python_kernel import PythonKernel, Training
from zoomgrad.engines.rerolled.emit.numpy_runs import Runs
from zoomgrad.engines.rerolled.recover.loops import Access, Operand
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Condition, Place, Program, Statement
from zoomgrad.engines.rerolled.step.step import Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class NumpyKernel(PythonKernel):
    """A Kernel that binds the step to a workspace at the first call, and again only if the workspace changes."""

    def __init__(self, step: Step) -> None:
        import numpy as np

        self.np = np
        super().__init__(step.workspace)
        self.step = step
        self._bound: Optional[_Bound] = None

    def workspace(self) -> Doubles:
        """A new w. It is an array, so that NumPy can view it."""
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

    def evaluate(self, t: Training) -> bool:
        return self._bind(t.w).run("evaluate") is not _FAILED

    def leave(self, t: Training) -> None:
        bound = self._bind(t.w)
        bound.run("leave")
        bound.training = None
        bound.buffers = {}


Action = Callable[[], object]
"""A prepared statement or run. It returns one of the two values below if it ends the section."""
_ENDED, _FAILED = "the turn is over", "a loss is not finite"


class _Bound:
    """The step over one workspace, as functions without arguments."""

    def __init__(self, step: Step, w: Doubles) -> None:
        import numpy as np

        self.np = np
        self.owner = w
        self.step = step
        self.w: Array = _view(np, w)
        self.buffers: dict[str, Doubles] = {}
        """The caller's buffers, during a call."""
        self.training: Optional[Training] = None
        self.runs = Runs(self.w, step.away)
        self.row = 0
        """The current one of the rows taken together."""
        self.rows = 0
        """Number of rows taken together."""
        self.flags = dict.fromkeys(steps.FLAGS, False)
        self.gradients_are_zero = False
        loops = step.loops
        start = loops.area("k").start
        self.w[start : start + len(loops.numbers)] = loops.numbers
        self.parameters, self.gradients = (
            self.w[area.start : area.stop] for area in (loops.area("p"), loops.area("q"))
        )
        copies = [(copy.parameter.places(copy.counts), copy.place.places(copy.counts)) for copy in loops.copies]
        none = np.zeros(0, np.int64)
        self._index, self._place = (np.concatenate([none, *column]) for column in zip((none, none), *copies))
        """Caller's index and place of each parameter that the graph uses."""
        self._unused = np.array(loops.unused, np.int64)
        self.routines = {name: [self._run(run) for run in runs] for name, runs in step.routines.items()}
        self.sections = {name: self._program(program) for name, program in step.programs.items()}

    def begin(self) -> None:
        """Reset the state of an earlier stretch."""
        self.flags.update(dict.fromkeys(steps.FLAGS, False))
        self.gradients_are_zero = False

    def run(self, section: str) -> object:
        """Run one section. Returns the value that ended it, or None."""
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
        """The statement as a function without arguments: its method in _ACTIONS, bound to its fields.

        Programs inside it become lists of such functions first.
        """
        fields = {
            name: self._program(value) if name in statement.PROGRAMS else value
            for name, value in vars(statement).items()
        }
        return partial(self._ACTIONS[type(statement)], self, *fields.values())

    def _run(self, run: steps.Run) -> Callable[[], None]:
        """The run; if it serves rows taken together, one for each number of rows."""
        if run.rows == 1:
            return self.runs.of(run)
        of = cache(lambda count: self.runs.of(run.of_rows(count)))
        return lambda: of(self.rows)() if self.rows else None

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

    def _take_row(self) -> None:
        self._read(0, 0)

    def _take_rows(self, most: int, to: Place) -> None:
        t = self.training
        assert t is not None
        self.rows = min(most, t.stretch.steps - t.step, t.stretch.batch - t.taken)
        for ahead in range(self.rows):
            self._read(to.base + ahead * to.per_row, ahead)

    def _read(self, place: int, ahead: int) -> None:
        assert self.training is not None
        read_row(self.np, self.w, place, self.training.stretch.columns, self.training.index(ahead))

    def _keep_earlier(self) -> None:
        self.rows = self.row

    def _guard(self, otherwise: Sequence[Action]) -> object:
        assert self.training is not None
        if self.training.record(self.loss()):
            return None
        _in_turn(otherwise)
        return _FAILED

    def _next_rate(self) -> None:
        assert self.training is not None
        self.runs.rate = next(self.training.rates)

    def _update(self, but: Optional[int]) -> None:
        """Update all parameters: the gradients of a sink that ran in place are zero."""
        assert self.training is not None
        rate, batch = self.runs.rate, self.training.stretch.batch
        _descend(self.parameters, self.gradients, rate, batch)
        if len(self._unused):  # the caller may have set their gradients
            p, q = (_view(self.np, self.buffers[what]) for what in ("parameters", "gradients"))
            parameters, gradients = p[self._unused], q[self._unused]
            _descend(parameters, gradients, rate, batch)
            p[self._unused], q[self._unused] = parameters, gradients
        self.gradients_are_zero = True

    def _clear_seeded(self) -> None:
        assert isinstance(self.step.loops.loss, Access)
        self.w[self.step.loops.loss.base + self.step.away] = 0.0

    def _copy(self, to: Place, source: Place, size: int) -> None:
        first, start = (place.base + self.row * place.per_row for place in (to, source))
        self.w[first : first + size] = self.w[start : start + size]

    def _set(self, flag: steps.Flag, value: bool) -> None:
        self.flags[flag] = value

    def _perform(self, routine: str) -> None:
        for run in self.routines[routine]:
            run()

    def _end_turn(self) -> object:
        return _ENDED

    def _skip_nothing(self, *_: object) -> None:
        """A statement about the lists of inputs, which are always complete here."""

    def _choose(self, condition: Condition, then: Sequence[Action], otherwise: Sequence[Action]) -> object:
        return _in_turn(then if self._holds(condition) else otherwise)

    def _each_row(self, body: Sequence[Action], last: bool) -> object:
        for row in range(self.rows - 1 if last else 0, self.rows):
            self.row = row
            ended = _in_turn(body)
            if ended:
                return ended
        return None

    _ACTIONS: ClassVar[dict[type[Statement], Callable[..., object]]] = {
        steps.Take: _take,
        steps.Give: _give,
        steps.TakeRow: _take_row,
        steps.TakeRows: _take_rows,
        steps.Perform: _perform,
        steps.Guard: _guard,
        steps.NextRate: _next_rate,
        steps.Update: _update,
        steps.ClearSeeded: _clear_seeded,
        steps.Copy: _copy,
        steps.Set: _set,
        steps.If: _choose,
        steps.EachRow: _each_row,
        steps.KeepEarlier: _keep_earlier,
        steps.EndTurn: _end_turn,
        **dict.fromkeys(
            (steps.MeasureWeights, steps.ListInputs, steps.ListRows, steps.TurnLists, steps.CheckFactors), _skip_nothing
        ),
    }

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
            return t.stretch.batch == (self.rows if condition.together else 1) and self.gradients_are_zero
        if isinstance(condition, steps.Batched):
            return t.stretch.batch >= condition.rows
        if isinstance(condition, steps.BatchEnds):
            return t.batch_ends(self.rows if condition.together else 1)
        if isinstance(condition, steps.EveryInput):
            return True  # nothing is skipped
        assert isinstance(condition, steps.Unbounded)
        return False


def _in_turn(actions: Sequence[Action]) -> object:
    """Run actions in order, until one ends the section. Returns the value that ended it, or None."""
    for action in actions:
        ended = action()
        if ended:
            return ended
    return None


def _view(np: Any, buffer: Any) -> Array:
    """A writable array over the doubles of a buffer."""
    view: Array = np.asarray(memoryview(buffer))
    return view


def _descend(parameters: Array, gradients: Array, rate: float, batch: int) -> None:
    step = rate * gradients
    parameters -= step if batch == 1 else step / batch
    gradients[:] = 0.0


def read_row(np: Any, w: Array, at: int, columns: Sequence[Column], row: int) -> None:
    """Read a row's inputs to the places from `at`."""
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
