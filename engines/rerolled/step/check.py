"""Step -> the same, or an error that names the first thing broken. Run after each rearrangement, where CHECKED.

The checker follows every way through `turn` and `leave`, with every answer that a condition can have, and requires:

- A row is taken before its values are computed, and its loss is recorded before any gradient is computed.
- Each loop runs once for each row: forward loops in the order of the listing, then backward loops, then sinks in any
  order. A sink adds to its gradient, updates in place, or waits.
- An update in place, or one that waits, belongs to a row that is alone. What waits is made before another loop reads
  its weights, and when training leaves.
- Gradients that are added are counted, and a batch that ends updates the parameters.
- A run that skips zeros has a list of this row's inputs, and a sink has one that was made with its factors checked.
- A row that was taken together with others gets back its own inputs and sums before a loop of its own reads them.
- What is copied lies within one area.

Whether the bits are the same is for tests to find out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from engines.rerolled.recover.groups import Phase
from engines.rerolled.step.language import (
    DUE,
    SECTIONS,
    Alone,
    BatchEnds,
    Both,
    CheckFactors,
    Condition,
    Copy,
    EachRow,
    EndTurn,
    EveryInput,
    Fit,
    Guard,
    If,
    ListInputs,
    MeasureWeights,
    NextRate,
    Not,
    Perform,
    Place,
    Program,
    Run,
    Set,
    Statement,
    TakeRow,
    TakeRows,
    Unbounded,
    Update,
    walk,
)
from engines.rerolled.step.spans import reads, span_of
from engines.rerolled.step.step import Span, Step


class BrokenStep(Exception):
    """A step that breaks a rule: where, and how. A mistake of the rearrangement that made it."""


def check_step(step: Step) -> Step:
    """The step itself. Raises BrokenStep."""
    if set(step.programs) != set(SECTIONS):
        raise BrokenStep(f"the sections are {', '.join(step.programs)}, not {', '.join(SECTIONS)}")
    for name, program in step.programs.items():
        _check_places(step, name, program)
    _check_pass(step, "forward", (Phase.FORWARD,))
    _check_pass(step, "backward", (Phase.BACKWARD, Phase.SINK))
    ways = _Ways(step)
    for due in (False, True) if ways.waiting is not None else (False,):
        ways.check(due)
    return step


def _check_places(step: Step, section: str, program: Program) -> None:
    """Routines exist, and what is copied lies within one area."""
    for statement in walk(program):
        if isinstance(statement, Perform) and statement.routine not in step.routines:
            raise BrokenStep(f"{section}: there is no routine {statement.routine!r}")
        if isinstance(statement, Copy):
            for place in (statement.to, statement.source):
                _check_span(step, f"{section}: a copy", place, statement.size)
        if isinstance(statement, TakeRows):
            _check_span(step, f"{section}: a row", statement.to, step.loops.inputs, statement.rows)


def _check_span(step: Step, where: str, place: Place, size: int, rows: int = 1) -> None:
    last = place.base + (rows - 1) * place.per_row + size
    if size < 1 or place.base < 0 or last > step.workspace:
        raise BrokenStep(f"{where} reaches from {place.base} to {last}, of {step.workspace} places")
    area = step.area_of(place.base)
    if last > area.stop:
        raise BrokenStep(f"{where} reaches beyond {area.name}")


def _check_pass(step: Step, name: str, phases: tuple[Phase, ...]) -> None:
    """A pass for a caller runs each of its loops in the plainest way, in order."""
    program = step.programs[name]
    runs = [run for s in program if isinstance(s, Perform) for run in step.routines[s.routine]]
    wanted = [at for at, loop in enumerate(step.loops.loops) if loop.phase in phases]
    if [run.number for run in runs] != wanted:
        raise BrokenStep(f"{name}: it runs loops {[run.number for run in runs]}, not {wanted}")
    if any(run.takes_rate or run.rows > 1 for run in runs):
        raise BrokenStep(f"{name}: it updates parameters, or runs several rows")
    if any(run.is_live for run in runs) and ListInputs(every=True) not in program:
        raise BrokenStep(f"{name}: it skips inputs without a list of all of them")


@dataclass(frozen=True)
class _State:
    """What has happened on one way through a turn."""

    answers: dict[Condition, bool] = field(default_factory=dict)
    """Answers that hold until something changes them."""
    rows: int = 1
    """How many were taken together."""
    restored: tuple[Span, ...] = ()
    """Places that hold what belongs to the present row."""
    forward: tuple[int, ...] = ()
    """Forward loops that ran, for this row or for all rows together."""
    together: tuple[int, ...] = ()
    """Those of them that ran for all rows together."""
    recorded: bool = False
    backward: tuple[int, ...] = ()
    sinks: tuple[tuple[int, str], ...] = ()
    """Each sink that ran, and how: `added`, `in place` or `waits`."""
    has_rate: bool = False
    due: bool = False
    """Whether the update that can wait does."""
    is_listed: bool = False
    is_checked: bool = False
    is_counted: bool = False
    is_updated: bool = False
    is_over: bool = False

    def knows(self, condition: Condition, holds: bool) -> _State:
        return replace(self, answers={**self.answers, condition: holds})

    def forgets(self, kind: type) -> _State:
        return replace(self, answers={c: holds for c, holds in self.answers.items() if not isinstance(c, kind)})


class _Ways:
    """All ways through `turn`, and through `leave`."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.loops = step.loops.loops
        self.forward, self.backward, self.sinks = (
            tuple(at for at, loop in enumerate(self.loops) if loop.phase == phase) for phase in Phase
        )
        waiting = [run.number for runs in step.routines.values() for run in runs if run.is_before]
        self.waiting: Optional[int] = waiting[0] if waiting else None
        """The sink that can wait."""
        start, stop = self._target(waiting[0]) if waiting else (step.away, step.away)
        self.weights: Span = (start - step.away, stop - step.away)

    def check(self, due: bool) -> None:
        """Raise BrokenStep for the first way that breaks a rule. due: whether the turn before left an update."""
        start = replace(_State(), due=due).knows(DUE, due)
        if due:  # it was left by a row that was alone, as all rows of its stretch are
            start = start.knows(Alone(), True)
        for state in self._follow(self.step.programs["turn"], start):
            if not state.is_over:
                self._check_turn(state)
        for state in self._follow(self.step.programs["leave"], start):
            if state.due:
                raise BrokenStep("leave: an update still waits")

    def _check_flag(self, state: _State) -> None:
        """A section may end here: `leave` and the next turn go by the flag."""
        if state.answers[DUE] != state.due:
            raise BrokenStep(f"turn: the flag says that {'an' if state.answers[DUE] else 'no'} update waits")

    def _check_turn(self, state: _State) -> None:
        self._check_flag(state)
        ways, alone = {how for _, how in state.sinks}, state.answers.get(Alone())
        lost = {*self.forward, *self.backward, *self.sinks} - {*state.forward, *state.backward, *dict(state.sinks)}
        if lost or not state.recorded:
            raise BrokenStep(f"turn: it ends without loops {sorted(lost)}, or without a record of the loss")
        if "added" in ways and (alone or not state.is_counted):
            raise BrokenStep("turn: gradients are added, and the row is alone, or not counted")
        if ways - {"added"} and not alone:
            raise BrokenStep("turn: a row that is not alone updates in place, or waits")
        if state.answers.get(BatchEnds()) and not state.is_updated:
            raise BrokenStep("turn: a batch ends without an update")

    # --- programs ----------------------------------------------------------------------------------------------------

    def _follow(self, program: Program, state: _State) -> Iterator[_State]:
        """The states in which the program can end."""
        if not program or state.is_over:
            yield state
            return
        for after in self._after(program[0], state):
            yield from self._follow(program[1:], after)

    def _after(self, statement: Statement, state: _State) -> Iterator[_State]:
        if isinstance(statement, If):
            for after, holds in self._ask(statement.condition, state):
                yield from self._follow(statement.then if holds else statement.otherwise, after)
        elif isinstance(statement, EachRow):
            yield from self._each_row(statement, state)
        elif isinstance(statement, EndTurn):
            self._check_turn(state)
            yield replace(state, is_over=True)
        elif isinstance(statement, Perform):
            for run in self.step.routines[statement.routine]:
                state = self._run(f"{statement.routine}: loop {run.number}", run, state)
            yield state
        else:
            yield self._simple(statement, state)

    def _ask(self, condition: Condition, state: _State) -> Iterator[tuple[_State, bool]]:
        """Each answer that the condition can have here, and the state after it."""
        if isinstance(condition, Not):
            yield from ((after, not holds) for after, holds in self._ask(condition.condition, state))
        elif isinstance(condition, Both):
            for after, holds in self._ask(condition.first, state):
                yield from self._ask(condition.second, after) if holds else ((after, False),)
        elif isinstance(condition, BatchEnds):
            if state.is_counted or condition.rows != state.rows:
                raise BrokenStep(f"turn: it counts {condition.rows} rows, or counts twice, and took {state.rows}")
            counted = replace(state, is_counted=True)
            yield from ((counted.knows(BatchEnds(), holds), holds) for holds in (False, True))
        else:
            known = state.answers.get(condition)
            if isinstance(condition, Fit) and state.answers.get(Alone()):
                known = False  # a row that is alone is a whole batch
            for holds in (False, True) if known is None else (known,):
                after = state.knows(condition, holds)
                yield (after.knows(Alone(), False) if isinstance(condition, Fit) and holds else after), holds

    def _simple(self, statement: Statement, state: _State) -> _State:
        if isinstance(statement, TakeRow):
            return replace(state, rows=1, restored=((0, self.step.loops.inputs),), is_listed=False, is_checked=False)
        if isinstance(statement, TakeRows):
            if not state.answers.get(Fit(statement.rows)):
                raise BrokenStep(f"turn: it takes {statement.rows} rows, which may not fit")
            return replace(state, rows=statement.rows, restored=(), is_listed=True, is_checked=True)
        if isinstance(statement, Guard):
            if set(state.forward) != set(self.forward) or state.recorded or state.due:
                raise BrokenStep("turn: a loss is recorded twice, before its values, or while an update waits")
            self._check_flag(state)
            return replace(state, recorded=True)
        if isinstance(statement, NextRate):
            return replace(state, has_rate=True)
        if isinstance(statement, Update):
            if not state.has_rate or not state.answers.get(BatchEnds()) or state.due:
                raise BrokenStep("turn: an update without its rate, before the batch ends, or while another waits")
            return replace(state, is_updated=True)
        if isinstance(statement, Set):
            return self._set(statement, state).knows(statement.flag, statement.value)
        if isinstance(statement, MeasureWeights):
            if state.due:
                raise BrokenStep("turn: weights are measured while their update waits")
            return state.forgets(Unbounded)
        if isinstance(statement, ListInputs):
            return replace(state, is_listed=bool(state.restored)).forgets(EveryInput)
        if isinstance(statement, CheckFactors):
            return replace(state, is_checked=state.backward == self.backward).forgets(EveryInput)
        if isinstance(statement, Copy):
            start = statement.to.base
            return replace(state, restored=(*state.restored, (start, start + statement.size)))
        return state

    def _set(self, statement: Set, state: _State) -> _State:
        if statement.flag != DUE:
            return state
        if not statement.value:
            if state.due:
                raise BrokenStep("turn: an update that waits is forgotten")
            return state
        if self.waiting is None or not state.has_rate:
            raise BrokenStep("turn: an update waits that nothing can make, or without its rate")
        return replace(state, due=True, sinks=(*state.sinks, (self.waiting, "waits")))

    def _each_row(self, statement: EachRow, state: _State) -> Iterator[_State]:
        """One row stands for all of them."""
        if statement.rows != state.rows or state.rows == 1:
            raise BrokenStep(f"turn: it goes through {statement.rows} rows, and took {state.rows}")
        performed = {name: self._sinks_of(program) for name, program in self._parts(statement).items()}
        if performed["rows before"] | performed["this row"] != set(self.sinks):
            raise BrokenStep("turn: rows before one that fails lose a sink")
        yield from self._follow(statement.body, state)

    def _parts(self, statement: EachRow) -> dict[str, Program]:
        """What is done for a row that goes well, and for those before one that fails."""
        guards = [s for s in statement.body if isinstance(s, Guard)]
        failed = [s for guard in guards for s in guard.otherwise if isinstance(s, EachRow) and s.before]
        return {"this row": statement.body, "rows before": tuple(s for each in failed for s in each.body)}

    def _sinks_of(self, program: Program) -> set[int]:
        runs = [run for s in program if isinstance(s, Perform) for run in self.step.routines[s.routine]]
        return {run.number for run in runs} & set(self.sinks)

    # --- runs --------------------------------------------------------------------------------------------------------

    def _run(self, where: str, run: Run, state: _State) -> _State:
        if run.is_before or run.due:
            if not state.due:
                raise BrokenStep(f"{where} makes an update that does not wait")
            state = replace(state, due=False)
        elif state.due and reads(run.loop, self.weights):
            raise BrokenStep(f"{where} reads weights whose update waits")
        if run.is_before:
            return state
        if run.rows not in (1, state.rows):
            raise BrokenStep(f"{where} runs for {run.rows} rows, and {state.rows} were taken")
        if run.rows == 1:
            self._check_own(where, run, state)
        if run.is_live and not state.is_listed:
            raise BrokenStep(f"{where} skips inputs without a list of this row's")
        if run.number in self.forward:
            if run.number in state.forward or (run.rows == 1 and run.number != self._next(self.forward, state.forward)):
                raise BrokenStep(f"{where} runs out of order")
            together = (run.number,) if run.rows > 1 else ()
            return replace(state, forward=(*state.forward, run.number), together=(*state.together, *together))
        if not state.recorded:
            raise BrokenStep(f"{where} runs before the loss is recorded")
        if run.number in self.backward:
            if run.number != self._next(self.backward, state.backward):
                raise BrokenStep(f"{where} runs out of order")
            return replace(state, backward=(*state.backward, run.number))
        if run.number in dict(state.sinks) or state.backward != self.backward:
            raise BrokenStep(f"{where} runs twice, or before all gradients are there")
        if run.is_live and not state.is_checked:
            raise BrokenStep(f"{where} skips inputs whose factors are not checked")
        if run.in_place and not state.has_rate:
            raise BrokenStep(f"{where} updates without a rate")
        return replace(state, sinks=(*state.sinks, (run.number, "in place" if run.in_place else "added")))

    def _check_own(self, where: str, run: Run, state: _State) -> None:
        """A loop over one row reads only its own inputs and sums."""
        for number, segment in enumerate(run.loop.segments):
            for operand in segment.operands:
                start, stop = span_of(operand, run.loop, number)
                if start == stop or any(first <= start and stop <= last for first, last in state.restored):
                    continue
                shared = [self._target(loop) for loop in state.together]
                if start < self.step.loops.inputs or any(start < last and first < stop for first, last in shared):
                    place = self.step.area_of(start)
                    raise BrokenStep(f"{where} reads {place.name}[{start - place.start}] of another row")

    def _target(self, number: int) -> Span:
        return self.loops[number].target.extent(self.loops[number].counts)

    def _next(self, order: tuple[int, ...], done: Any) -> Optional[int]:
        """The first loop that has not run."""
        return next((number for number in order if number not in done), None)
