"""All ways through a turn of training: the core of the checker.

This is abstract interpretation. A State records what has happened so far on one way: which loops ran, whether the row
is counted, whether an update waits. A condition whose answer is not yet known splits a way in two, one for each answer;
an answer holds until a statement changes it. A statement's effect (in `language`) changes the facts of the state; a
function here holds the further rules of a statement.

The rules are about order. Whether a loop or a copy has the right places does not depend on the way, so any training
shows it: tests compare the bits.

Example: the turn of the plain step is `take row, run values, guard, run gradients, run sinks, if batch ends after 1:
next rate, update`. It has two ways. On both, all loops run in order. On the first, the batch ends and the update has
its rate; on the second, the gradients stay for later rows. Without `update`, the first way would end with BrokenStep,
"a batch ends without an update".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Optional

from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.step.language import (
    DUE,
    Alone,
    Batched,
    BatchEnds,
    Both,
    CheckFactors,
    ClearSeeded,
    Condition,
    Copy,
    Divided,
    EachRow,
    Effect,
    EndTurn,
    EveryInput,
    Fact,
    Guard,
    If,
    KeepEarlier,
    Perform,
    Program,
    Run,
    Set,
    Statement,
    TakeRows,
    Update,
    walk,
)
from zoomgrad.engines.rerolled.step.spans import Span, reads
from zoomgrad.engines.rerolled.step.step import Step


class BrokenStep(Exception):
    """A step breaks a rule, which is a bug in a rearrangement. The message names the place and the rule."""


@dataclass(frozen=True)
class State:
    """What has happened on one way through a turn."""

    facts: frozenset[Fact] = frozenset((Fact.BOUNDED,))
    answers: dict[Condition, bool] = field(default_factory=dict)
    """Known answers, until a statement changes them."""
    rows: int = 1
    """Number of rows taken together."""
    forward: tuple[int, ...] = ()
    """Forward loops that ran, for this row or for all rows together."""
    backward: tuple[int, ...] = ()
    sinks: tuple[tuple[int, str], ...] = ()
    """Each sink that ran, and how: `added`, `in place` or `waits`."""
    divided: str = ""
    """How threads divide the current statements: by `rows`, by `lanes`, or not at all."""

    def has(self, fact: Fact) -> bool:
        return fact in self.facts

    def sets(self, *facts: Fact) -> State:
        return replace(self, facts=self.facts.union(facts))

    def clears(self, *facts: Fact) -> State:
        return replace(self, facts=self.facts.difference(facts))

    def puts(self, fact: Fact, holds: bool) -> State:
        return self.sets(fact) if holds else self.clears(fact)

    def knows(self, condition: Condition, holds: bool) -> State:
        return replace(self, answers={**self.answers, condition: holds})

    def forgets(self, *kinds: type) -> State:
        return replace(self, answers={c: holds for c, holds in self.answers.items() if not isinstance(c, kinds)})

    def after(self, effect: Effect) -> State:
        """The state after a statement with this effect. Raises BrokenStep if a fact before it is wrong."""
        if not self.facts.issuperset(effect.needs) or self.facts.intersection(effect.forbids):
            raise BrokenStep(f"turn: {effect.broken}")
        return self.clears(*effect.clears).sets(*effect.sets).forgets(*effect.forgets)


class Ways:
    """All ways through `turn`, and through `leave`."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.loops = step.loops.loops
        self.forward, self.backward, self.sinks = (
            tuple(at for at, loop in enumerate(self.loops) if loop.phase == phase) for phase in Phase
        )
        waiting = [run.number for runs in step.routines.values() for run in runs if run.is_before]
        self.waiting: Optional[int] = waiting[0] if waiting else None
        """The sink whose update can wait."""
        weights = self.loops[waiting[0]].target if waiting else None
        start, stop = weights.extent(self.loops[waiting[0]].counts) if weights else (step.away, step.away)
        self.weights: Span = (start - step.away, stop - step.away)
        self.due = next((run.due for runs in step.routines.values() for run in runs if run.due), None)

    def check(self, due: bool) -> None:
        """Raise BrokenStep for the first way that breaks a rule. due: whether the previous turn left an update."""
        start = State().puts(Fact.WAITING, due).knows(DUE, due)
        if due:  # only a row that is alone leaves an update, and then all rows of its stretch are alone
            start = start.knows(Alone(), True)
        for state in self._follow(self.step.programs["turn"], start):
            if not state.has(Fact.OVER):
                self._check_turn(state)
        left = replace(start.sets(Fact.TAKEN), forward=self.forward, backward=self.backward)
        for state in self._follow(self.step.programs["leave"], left):
            if state.has(Fact.WAITING):
                raise BrokenStep("leave: an update still waits")

    def _check_flag(self, state: State) -> None:
        """Check the flag at a possible end of a section, because `leave` and the next turn rely on it."""
        if state.answers[DUE] != state.has(Fact.WAITING):
            raise BrokenStep(f"turn: the flag says that {'an' if state.answers[DUE] else 'no'} update waits")

    def _check_turn(self, state: State) -> None:
        self._check_flag(state)
        ways, alone = {how for _, how in state.sinks}, state.answers.get(Alone())
        is_batch = state.answers.get(Alone(together=True))
        lost = {*self.forward, *self.backward, *self.sinks} - {*state.forward, *state.backward, *dict(state.sinks)}
        if lost or not state.has(Fact.RECORDED):
            raise BrokenStep(f"turn: it ends without loops {sorted(lost)}, or without a record of the loss")
        if "added" in ways and (alone or not state.has(Fact.COUNTED)):
            raise BrokenStep("turn: gradients are added, but the row is alone or not counted")
        if "added" in ways and self.step.loops.has_parameter_as_loss and not state.has(Fact.CLEARED):
            raise BrokenStep("turn: the gradient of a parameter that is the loss is not cleared")
        if ways - {"added"} and not (alone or is_batch):
            raise BrokenStep("turn: a row that is not alone updates in place or defers an update")
        if state.answers.get(BatchEnds()) and not state.has(Fact.UPDATED):
            raise BrokenStep("turn: a batch ends without an update")
        if not state.has(Fact.BOUNDED):
            raise BrokenStep("turn: weights are not measured after an update")

    # --- programs ----------------------------------------------------------------------------------------------------

    def _follow(self, program: Program, state: State) -> Iterator[State]:
        """All states in which the program can end."""
        if not program or state.has(Fact.OVER):
            yield state
            return
        for after in self._after(program[0], state):
            yield from self._follow(program[1:], after)

    def _after(self, statement: Statement, state: State) -> Iterator[State]:
        """All states in which the statement can end: by its effect, and by its own rule if it has one."""
        rule = self._RULES.get(type(statement))
        after = state.after(statement.EFFECT)
        return rule(self, statement, state, after) if rule else iter((after,))

    def _ask(self, condition: Condition, state: State) -> Iterator[tuple[State, bool]]:
        """Each possible answer to the condition, with the state after it."""
        if isinstance(condition, Both):
            for after, holds in self._ask(condition.first, state):
                yield from self._ask(condition.second, after) if holds else ((after, False),)
        elif isinstance(condition, BatchEnds):
            if state.has(Fact.COUNTED) or condition.together != (state.rows > 1):
                raise BrokenStep("turn: it counts rows that it did not take, or counts twice")
            counted = state.sets(Fact.COUNTED)
            answers = (True,) if state.answers.get(Alone(together=True)) else (False, True)
            yield from ((counted.knows(BatchEnds(), holds), holds) for holds in answers)
        elif isinstance(condition, (Alone, EveryInput)) and condition.together != (state.rows > 1):
            raise BrokenStep("turn: it asks about other rows than it took")
        else:
            known = state.answers.get(condition)
            if isinstance(condition, Batched) and state.answers.get(Alone()):
                known = False  # a row that is alone is a whole batch
            for holds in (False, True) if known is None else (known,):
                after = state.knows(condition, holds)
                yield (after.knows(Alone(), False) if isinstance(condition, Batched) and holds else after), holds

    # --- rules: each gets the state before the statement, and the state after its effect -----------------------------

    def _if(self, statement: If, state: State, _: State) -> Iterator[State]:
        for after, holds in self._ask(statement.condition, state):
            yield from self._follow(statement.then if holds else statement.otherwise, after)

    def _divided(self, statement: Divided, state: State, _: State) -> Iterator[State]:
        self._check_division(statement, state)
        for after in self._follow(statement.body, replace(state, divided=statement.by)):
            yield replace(after, divided="")

    def _end_turn(self, _: EndTurn, state: State, after: State) -> Iterator[State]:
        self._check_turn(state)
        yield after

    def _perform(self, statement: Perform, state: State, _: State) -> Iterator[State]:
        for run in self.step.routines[statement.routine]:
            state = self._run(f"{statement.routine}: loop {run.number}", run, state)
        yield state

    def _take_rows(self, statement: TakeRows, state: State, after: State) -> Iterator[State]:
        if statement.rows < 2:
            raise BrokenStep("turn: it takes fewer than two rows together")
        yield replace(after, rows=statement.rows)

    def _keep_earlier(self, _: KeepEarlier, state: State, after: State) -> Iterator[State]:
        raise BrokenStep("turn: rows are left out although none has failed, or twice")

    def _guard(self, statement: Guard, state: State, after: State) -> Iterator[State]:
        if set(state.forward) != set(self.forward) or state.divided:
            raise BrokenStep(f"turn: {Guard.EFFECT.broken}")
        self._check_flag(state)
        if statement.otherwise and state.rows == 1:
            raise BrokenStep("turn: a failed row runs statements for earlier rows, but there are none")
        yield after

    def _clear_seeded(self, _: ClearSeeded, state: State, after: State) -> Iterator[State]:
        if state.sinks:
            raise BrokenStep("turn: the gradient of the loss is cleared after a sink has added to it")
        yield after

    def _update(self, statement: Update, state: State, after: State) -> Iterator[State]:
        if not state.answers.get(BatchEnds()):
            raise BrokenStep(f"turn: {Update.EFFECT.broken}")
        if state.divided == "rows":
            raise BrokenStep("turn: an update by rows")
        if set(dict(state.sinks)) != set(self.sinks):
            raise BrokenStep("turn: an update before all gradients are added")
        if [number for number, how in state.sinks if how != "added"] != [statement.but] * (statement.but is not None):
            raise BrokenStep("turn: parameters are updated twice, or left out")
        yield after.puts(Fact.BOUNDED, not self.step.skips)

    def _check_factors(self, _: CheckFactors, state: State, after: State) -> Iterator[State]:
        yield after.puts(Fact.CHECKED, state.backward == self.backward)

    def _copy(self, copy: Copy, state: State, after: State) -> Iterator[State]:
        yield after.sets(Fact.KEEPING) if self.due and copy.to.base == self.due.before.base else after

    def _set(self, statement: Set, state: State, _: State) -> Iterator[State]:
        after = state.knows(statement.flag, statement.value)
        if statement.flag == DUE and not statement.value and state.has(Fact.WAITING):
            raise BrokenStep("turn: an update that waits is lost")
        if statement.flag == DUE and statement.value:
            if self.waiting is None or not state.facts.issuperset((Fact.RATED, Fact.KEEPING)):
                raise BrokenStep("turn: an update waits, but nothing can make it, or its rate or inputs are missing")
            if self.waiting in dict(state.sinks):
                raise BrokenStep("turn: an update waits that has already been made")
            after = replace(after.sets(Fact.WAITING), sinks=(*state.sinks, (self.waiting, "waits")))
        yield after

    def _each_row(self, statement: EachRow, state: State, _: State) -> Iterator[State]:
        """Follow the body once, because all rows run the same statements."""
        if state.rows == 1 or state.has(Fact.WITHIN):
            raise BrokenStep("turn: it runs over rows, but took one, or is within one of them")
        if statement.last:
            if not all(isinstance(each, Copy) for each in statement.body):
                raise BrokenStep("turn: something is computed for the last row only")
            yield state
            return
        for after in self._follow(statement.body, state.sets(Fact.WITHIN)):
            yield after.clears(Fact.WITHIN)
            for guard in (s for s in statement.body if isinstance(s, Guard)):
                self._check_failure(guard, after)

    def _check_failure(self, guard: Guard, row: State) -> None:
        """Check the handling of a failed row: earlier rows run their missing sinks, then its inputs are restored.

        row: the state of a row that did not fail.
        """
        first, *rest = guard.otherwise or (None,)
        if not isinstance(first, KeepEarlier):
            raise BrokenStep("turn: rows before one that fails lose a sink")
        for failed in self._follow(tuple(rest), row.clears(Fact.WITHIN)):
            if set(dict(failed.sinks)) != set(self.sinks):
                raise BrokenStep("turn: rows before one that fails lose a sink")
            if failed.forward != row.forward or failed.backward != row.backward:
                raise BrokenStep("turn: a pass runs after a row has failed")

    # --- runs --------------------------------------------------------------------------------------------------------

    def _run(self, where: str, run: Run, state: State) -> State:
        if run.is_before or run.due:
            if not state.has(Fact.WAITING):
                raise BrokenStep(f"{where} makes a deferred update, but none waits")
            state = state.clears(Fact.WAITING).puts(Fact.KEEPING, bool(run.due and run.due.keeps))
        elif state.has(Fact.WAITING) and reads(run.loop, self.weights):
            raise BrokenStep(f"{where} reads weights whose update waits")
        if run.is_before:
            return state
        if run.is_part != bool(state.divided and not run.own) or (run.own and state.divided != "rows"):
            raise BrokenStep(f"{where} does not run as the threads do")
        if not state.has(Fact.TAKEN) or (run.own and not state.has(Fact.WITHIN)):
            raise BrokenStep(f"{where} runs before a row is taken, or has the areas of another row")
        if run.rows not in (1, state.rows) or (run.rows > 1 and state.has(Fact.WITHIN)):
            raise BrokenStep(f"{where} runs for {run.rows} rows, but {state.rows} were taken, or one row is current")
        if run.is_live and not state.has(Fact.LISTED):
            raise BrokenStep(f"{where} skips inputs without a list of this row's")
        if run.is_live and run.rows != state.rows:
            raise BrokenStep(f"{where} skips inputs with the list of another row")
        if run.number in self.forward:
            if run.number in state.forward or (run.rows == 1 and run.number != self._next(self.forward, state.forward)):
                raise BrokenStep(f"{where} runs out of order")
            return replace(state, forward=(*state.forward, run.number))
        # A row's own gradients do no harm if its loss turns out not to be finite.
        if not state.has(Fact.RECORDED) and not run.own:
            raise BrokenStep(f"{where} runs before the loss is recorded")
        if run.number in self.backward:
            if run.number != self._next(self.backward, state.backward):
                raise BrokenStep(f"{where} runs out of order")
            return replace(state, backward=(*state.backward, run.number))
        if run.number in dict(state.sinks) or state.backward != self.backward:
            raise BrokenStep(f"{where} runs twice, or before all gradients are computed")
        if run.is_live and not state.has(Fact.CHECKED):
            raise BrokenStep(f"{where} skips inputs whose factors are not checked")
        if run.in_place and (run.rows != state.rows or not state.has(Fact.RATED)):
            raise BrokenStep(f"{where} updates without a rate, or before it has added all rows")
        if run.rows > 1 and run.is_live and not state.has(Fact.TURNED):
            raise BrokenStep(f"{where} skips rows, but their lists were not turned")
        return replace(state, sinks=(*state.sinks, (run.number, "in place" if run.in_place else "added")))

    def _check_division(self, divided: Divided, state: State) -> None:
        """Check that no thread needs what another one computes meanwhile, or changes what all of them need."""
        if state.divided or divided.by not in ("rows", "lanes"):
            raise BrokenStep("turn: a division within another one, or by something else than rows or lanes")
        allowed = (TakeRows, Perform, EachRow) if divided.by == "rows" else (Perform, Update)
        if not all(isinstance(s, allowed) for s in divided.body) or (len(divided.body) > 1 and divided.by == "lanes"):
            raise BrokenStep(f"turn: something is divided by {divided.by} that can't be")
        runs = [run for s in walk(divided.body) if isinstance(s, Perform) for run in self.step.routines[s.routine]]
        for run in runs:
            if divided.by == "rows" and run.loop.phase == Phase.SINK:
                raise BrokenStep(f"turn: loop {run.number} adds up rows, but rows are divided")
            # A sink reads no parameter except its lane's own if it updates in place: see `allows_updates_in_place`.
            written = run.loop.target.extent(run.loop.counts)
            for other in runs:
                if divided.by == "lanes" and not run.in_place and reads(other.loop, written):
                    raise BrokenStep(f"turn: loop {other.number} reads what other threads compute in loop {run.number}")
            if run.in_place and len(runs) > 1:
                raise BrokenStep("turn: several loops update in place at the same time")

    _RULES: ClassVar[dict[type[Statement], Callable[..., Iterator[State]]]] = {
        TakeRows: _take_rows,
        Perform: _perform,
        Guard: _guard,
        Update: _update,
        ClearSeeded: _clear_seeded,
        Copy: _copy,
        Set: _set,
        CheckFactors: _check_factors,
        If: _if,
        EachRow: _each_row,
        Divided: _divided,
        KeepEarlier: _keep_earlier,
        EndTurn: _end_turn,
    }
    """Kind of statement -> its rule. The others have an effect only."""

    def _next(self, order: tuple[int, ...], done: Iterable[int]) -> Optional[int]:
        """The first loop that has not run."""
        passed = frozenset(done)  # searching a tuple of hundreds of loops would take seconds
        return next((number for number in order if number not in passed), None)
