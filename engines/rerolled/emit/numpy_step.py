"""Step -> Kernel in NumPy: each statement becomes a function without arguments, each run a few array operations.

This back end runs plain steps, and steps that update in place, as `fitted.ARRAYS` says.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Optional

from zoomgrad.engines.columns import DOUBLES, Column
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.kernel.python_kernel import PythonKernel, Training
from zoomgrad.engines.rerolled.emit.numpy_runs import Runs
from zoomgrad.engines.rerolled.recover.loops import Access
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Fact, Program, Statement
from zoomgrad.engines.rerolled.step.step import Step

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.emit.numpy_runs import Array


Action = Callable[[], Optional[bool]]
"""A prepared statement. It returns False if a loss is not finite, which ends the section."""


class NumpyKernel(PythonKernel):
    """A Kernel that binds the step to a workspace at the first call, and again only if the workspace changes."""

    def __init__(self, step: Step) -> None:
        import numpy as np

        self.np = np
        super().__init__(step.workspace)
        self.step = step
        self.buffers: dict[str, Doubles] = {}
        """The caller's buffers, during a call."""
        self.training: Optional[Training] = None
        self.gradients_are_zero = False
        self._owner: Optional[Doubles] = None
        self._index, self._place = step.loops.indices_and_places()
        self._unused = np.array(step.loops.unused, np.int64)

    def workspace(self) -> Doubles:
        """A new w. It is an array, so that NumPy can view it."""
        return array("d", bytes(8 * self._workspace))

    def _bind(self, w: Doubles) -> None:
        """Prepare all statements as functions without arguments over this workspace."""
        if self._owner is w:
            return
        step, loops = self.step, self.step.loops
        self._owner, self.w = w, _view(self.np, w)
        self.runs = Runs(self.w, step.away)
        start = loops.area("k").start
        self.w[start : start + len(loops.numbers)] = loops.numbers
        self._parameters, self._gradients = (
            self.w[area.start : area.stop] for area in (loops.area("p"), loops.area("q"))
        )
        self.routines = {name: [self.runs.of(run) for run in runs] for name, runs in step.routines.items()}
        self.sections = {name: self._program(program) for name, program in step.programs.items()}

    def _run(self, section: str, w: Doubles) -> bool:
        """Run one section. Returns whether all losses are finite."""
        self._bind(w)
        with self.np.errstate(all="ignore"):
            return _in_turn(self.sections[section])

    def forward(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        self.buffers = {"inputs": x, "parameters": p, "outputs": y}
        self._run("forward", w)
        return self._leaf(self.step.loops.loss)

    def backward(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        self.buffers = {"inputs": x, "parameters": p, "gradients": q}
        self._run("backward", w)

    def update(self, p: Doubles, q: Doubles, rate: float, batch: int) -> None:
        with self.np.errstate(all="ignore"):
            _descend(_view(self.np, p), _view(self.np, q), rate, batch)

    def enter(self, t: Training) -> None:
        self.training = t
        self.buffers = {"inputs": t.x, "parameters": t.p, "outputs": t.y, "gradients": t.q}
        self.gradients_are_zero = False
        self._run("enter", t.w)

    def turn(self, t: Training) -> bool:
        return self._run("turn", t.w)

    def evaluate(self, t: Training) -> bool:
        return self._run("evaluate", t.w)

    def leave(self, t: Training) -> None:
        self._run("leave", t.w)
        self.training = None
        self.buffers = {}

    def _leaf(self, leaf: Access) -> float:
        return float(self.w[leaf.base])

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
        assert self.training is not None
        read_row(self.np, self.w, self.training.stretch.columns, self.training.index())

    def _guard(self, _: Sequence[Action]) -> bool:
        assert self.training is not None
        return self.training.record(self._leaf(self.step.loops.loss))

    def _next_rate(self) -> None:
        assert self.training is not None
        self.runs.rate = next(self.training.rates)

    def _update(self, _: Optional[int]) -> None:
        assert self.training is not None
        rate, batch = self.runs.rate, self.training.stretch.batch
        _descend(self._parameters, self._gradients, rate, batch)
        if len(self._unused):  # the caller may have set their gradients
            p, q = (_view(self.np, self.buffers[what]) for what in ("parameters", "gradients"))
            parameters, gradients = p[self._unused], q[self._unused]
            _descend(parameters, gradients, rate, batch)
            p[self._unused], q[self._unused] = parameters, gradients
        self.gradients_are_zero = True

    def _perform(self, routine: str) -> None:
        for run in self.routines[routine]:
            run()

    def _choose(self, condition: Fact, then: Sequence[Action], otherwise: Sequence[Action]) -> bool:
        return _in_turn(then if self._holds(condition) else otherwise)

    _ACTIONS: ClassVar[dict[type[Statement], Callable[..., Optional[bool]]]] = {
        steps.Take: _take,
        steps.Give: _give,
        steps.TakeRow: _take_row,
        steps.Perform: _perform,
        steps.Guard: _guard,
        steps.NextRate: _next_rate,
        steps.Update: _update,
        steps.If: _choose,
    }

    def _holds(self, condition: Fact) -> bool:
        t = self.training
        assert t is not None
        if condition == Fact.ALONE:
            return t.stretch.batch == 1 and self.gradients_are_zero
        assert condition == Fact.ENDS
        return t.batch_ends(1)


def _in_turn(actions: Sequence[Action]) -> bool:
    """Run actions in order, until one returns False. Returns whether none did."""
    return all(action() is not False for action in actions)


def _view(np: Any, buffer: Any) -> Array:
    """A writable array over the doubles of a buffer."""
    view: Array = np.asarray(memoryview(buffer))
    return view


def _descend(parameters: Array, gradients: Array, rate: float, batch: int) -> None:
    step = rate * gradients
    parameters -= step if batch == 1 else step / batch
    gradients[:] = 0.0


def read_row(np: Any, w: Array, columns: Sequence[Column], row: int) -> None:
    """Read a row's inputs to the first places of the workspace."""
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
