"""All ways through a turn of training: the core of the checker.

This is abstract interpretation. A State records what has happened so far on one way: which loops ran, which row the
inputs belong to, whether an update waits. A condition whose answer is not yet known splits a way in two, one for each
answer; an answer holds until a statement changes it. A statement's effect (in `language`) changes the facts of the
state; a statement with rules of its own has a function here.

Example: the turn of the plain step is `take row, run values, guard, run gradients, run sinks, if batch ends after 1:
next rate, update`. It has two ways. On both, all loops run in order. On the first, the batch ends and the update has
its rate; on the second, the gradients stay for later rows. Without `update`, the first way would end with BrokenStep,
"a batch ends without an update".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Optional

from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.recover.loops import Access, Operand
from zoomgrad.engines.rerolled.step.language import (
    DUE,
    KEPT,
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
    Give,
    Guard,
    If,
    KeepEarlier,
    ListInputs,
    ListRows,
    Not,
    Perform,
    Place,
    Program,
    Run,
    Set,
    Statement,
    TakeRow,
    TakeRows,
    TurnLists,
    Update,
    walk,
)
from zoomgrad.engines.rerolled.step.spans import Span, reads, span_of
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
    taken: Optional[Place] = None
    """Place of the rows taken together."""
    restored: tuple[Span, ...] = ()
    """Places that hold data of the current row."""
    saved: tuple[Copy, ...] = ()
    """Copies that save data of each row."""
    forward: tuple[int, ...] = ()
    """Forward loops that ran, for this row or for all rows together."""
    together: tuple[int, ...] = ()
    """Forward loops that ran for all rows together."""
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

    def holds(self, span: Span) -> bool:
        """Whether the whole span belongs to the current row."""
        return span[0] >= span[1] or any(start <= span[0] and span[1] <= stop for start, stop in self.restored)


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
        start, stop = self._target(waiting[0]) if waiting else (step.away, step.away)
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
        left = replace(start, restored=((0, self.step.loops.inputs),), forward=self.forward, backward=self.backward)
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
        if not state.holds((0, self.step.loops.inputs)):
            raise BrokenStep("turn: it ends without the inputs of its last row")

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
        if isinstance(condition, Not):
            yield from ((after, not holds) for after, holds in self._ask(condition.condition, state))
        elif isinstance(condition, Both):
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

    def _take_row(self, _: TakeRow, state: State, after: State) -> Iterator[State]:
        yield replace(after, rows=1, restored=((0, self.step.loops.inputs),))

    def _take_rows(self, statement: TakeRows, state: State, after: State) -> Iterator[State]:
        if statement.rows < 2 or state.rows > 1 or state.restored:
            raise BrokenStep("turn: it takes rows twice, or fewer than two")
        yield replace(after, rows=statement.rows, taken=statement.to, restored=())

    def _keep_earlier(self, _: KeepEarlier, state: State, after: State) -> Iterator[State]:
        raise BrokenStep("turn: rows are left out although none has failed, or twice")

    def _guard(self, statement: Guard, state: State, after: State) -> Iterator[State]:
        if set(state.forward) != set(self.forward) or state.divided:
            raise BrokenStep(f"turn: {Guard.EFFECT.broken}")
        self._check_flag(state)
        loss = self.step.loops.loss
        if isinstance(loss, Access) and self._is_shared(state, (loss.base, loss.base + 1)):
            raise BrokenStep("turn: a loss is recorded that belongs to another row")
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

    def _list_inputs(self, _: ListInputs, state: State, after: State) -> Iterator[State]:
        yield after.puts(Fact.LISTED, bool(state.restored))

    def _list_rows(self, statement: ListRows, state: State, after: State) -> Iterator[State]:
        yield after.puts(Fact.LISTED, statement.at == state.taken)

    def _turn_lists(self, _: TurnLists, state: State, after: State) -> Iterator[State]:
        yield after.puts(Fact.TURNED, state.has(Fact.LISTED))

    def _check_factors(self, statement: CheckFactors, state: State, after: State) -> Iterator[State]:
        if statement.at != state.taken:
            raise BrokenStep("turn: factors are checked with the inputs of other rows")
        yield after.puts(Fact.CHECKED, state.backward == self.backward)

    def _copy(self, copy: Copy, state: State, _: State) -> Iterator[State]:
        """Check a copy: it restores data of a row, saves data of it, or keeps inputs for a deferred update."""
        if (copy.to.per_row or copy.source.per_row) and not state.has(Fact.CURRENT):
            raise BrokenStep("turn: a copy needs a row, but none is current")
        start = copy.to.base
        span = (start, start + copy.size)
        if self.due and start == self.due.before.base and not copy.to.per_row:
            inputs = self.step.loops.loops[self.waiting or 0].segments[0].operands[0]
            assert isinstance(inputs, Access)
            size = self.loops[self.waiting or 0].counts[0]
            yield state.puts(Fact.KEEPING, (copy.source, copy.size) == (Place(inputs.base), size))
            return
        if copy.to.per_row:
            yield replace(state, saved=(*state.saved, copy))
            return
        kept = [Copy(saved.source, saved.to, saved.size) for saved in state.saved]
        if copy in kept or copy.source in (*self._of_row(state, start), *self._sums_of_row(state, span)):
            yield replace(state, restored=(*state.restored, span))
            return
        raise BrokenStep(f"turn: a copy from {copy.source.base} to {start} gives a row data of another row")

    def _of_row(self, state: State, start: int) -> Iterator[Place]:
        """The place from which inputs at `start` may be restored."""
        own = self._own_place(start)
        if own:
            yield own
        elif state.taken and start < self.step.loops.inputs:
            yield Place(state.taken.base + start, state.taken.per_row)

    def _sums_of_row(self, state: State, span: Span) -> Iterator[Place]:
        """The place at which a loop that ran for all rows stored the current row's sums."""
        for number in state.together:
            if span == self._target(number):
                run = next(r for runs in self.step.routines.values() for r in runs if r.number == number and r.rows > 1)
                target = run.loop.target
                yield Place(target.base, target.lanes[0] if isinstance(target.lanes[0], int) else 0)

    def _give(self, statement: Give, state: State, after: State) -> Iterator[State]:
        if statement == Give("outputs"):
            for output in self.step.loops.outputs:
                if isinstance(output, Access) and self._is_shared(state, (output.base, output.base + 1)):
                    raise BrokenStep("turn: an output is given that belongs to another row")
        yield after

    def _is_shared(self, state: State, span: Span) -> bool:
        """Whether the span has inputs, or sums of a loop that ran for all rows, that may belong to another row."""
        if state.taken and self._own_place(span[0]):
            return not state.holds(span)
        shared = [self._target(loop) for loop in state.together]
        of_rows = span[0] < self.step.loops.inputs or any(span[0] < last and first < span[1] for first, last in shared)
        return of_rows and not state.holds(span)

    def _set(self, statement: Set, state: State, _: State) -> Iterator[State]:
        after = state.knows(statement.flag, statement.value)
        if statement.flag == KEPT and statement.value != state.has(Fact.KEEPING):
            raise BrokenStep("turn: the flag `kept` does not match the inputs that are kept")
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
        row = replace(state.sets(Fact.CURRENT), restored=())
        if statement.last:
            if not all(isinstance(each, Copy) for each in statement.body):
                raise BrokenStep("turn: something is computed for the last row only")
            for after in self._follow(statement.body, row):
                yield after.clears(Fact.CURRENT)
            return
        for after in self._follow(statement.body, row.sets(Fact.WITHIN)):
            yield replace(after.clears(Fact.CURRENT, Fact.WITHIN), restored=())
            for guard in (s for s in statement.body if isinstance(s, Guard)):
                self._check_failure(guard, after)

    def _check_failure(self, guard: Guard, row: State) -> None:
        """Check the handling of a failed row: earlier rows run their missing sinks, then its inputs are restored.

        row: the state of a row that did not fail.
        """
        first, *rest = guard.otherwise or (None,)
        if not isinstance(first, KeepEarlier):
            raise BrokenStep("turn: rows before one that fails lose a sink")
        for failed in self._follow(tuple(rest), replace(row.clears(Fact.WITHIN), restored=())):
            if set(dict(failed.sinks)) != set(self.sinks):
                raise BrokenStep("turn: rows before one that fails lose a sink")
            if failed.forward != row.forward or failed.backward != row.backward:
                raise BrokenStep("turn: a pass runs after a row has failed")
            if not failed.holds((0, self.step.loops.inputs)):
                raise BrokenStep("turn: it ends without the inputs of the row that failed")

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
        if run.own and (run.own != self.own or not state.has(Fact.WITHIN)):
            raise BrokenStep(f"{where} has the areas of another row")
        if run.rows not in (1, state.rows) or (run.rows > 1 and state.has(Fact.WITHIN)):
            raise BrokenStep(f"{where} runs for {run.rows} rows, but {state.rows} were taken, or one row is current")
        if run.rows == 1 and not run.own:
            self._check_own(where, run, state)
        if run.is_live and not state.has(Fact.LISTED):
            raise BrokenStep(f"{where} skips inputs without a list of this row's")
        if run.is_live and run.rows != state.rows:
            raise BrokenStep(f"{where} skips inputs with the list of another row")
        if run.number in self.forward:
            if run.number in state.forward or (run.rows == 1 and run.number != self._next(self.forward, state.forward)):
                raise BrokenStep(f"{where} runs out of order")
            if run.rows > 1:
                self._check_together(where, run, state)
            together = (run.number,) if run.rows > 1 else ()
            return replace(state, forward=(*state.forward, run.number), together=(*state.together, *together))
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
        if run.rows > 1:
            self._check_saved(where, run, state)
            if run.is_live and not state.has(Fact.TURNED):
                raise BrokenStep(f"{where} skips rows, but their lists were not turned")
        return replace(state, sinks=(*state.sinks, (run.number, "in place" if run.in_place else "added")))

    def _check_own(self, where: str, run: Run, state: State) -> None:
        """Check that a loop over one row reads only that row's inputs and sums."""
        for number, segment in enumerate(run.loop.segments):
            for operand in segment.operands:
                span = span_of(operand, run.loop, number)
                if span[0] < span[1] and self._is_shared(state, span):
                    place = self.step.area_of(span[0])
                    raise BrokenStep(f"{where} reads {place.name}[{span[0] - place.start}] of another row")

    def _check_together(self, where: str, run: Run, state: State) -> None:
        """Check that a forward loop over several rows equals the listing's, with each row's own inputs."""
        listed = self.loops[run.number]
        assert state.taken is not None
        for segment, wanted in itertools.zip_longest(run.loop.segments, listed.segments):
            pairs = zip(segment.operands, wanted.operands) if segment and wanted and segment[:2] == wanted[:2] else ()
            if not pairs or not all(self._is_of_rows(*pair, state.taken) for pair in pairs):
                raise BrokenStep(f"{where} differs from the listing's loop over {run.rows} rows")

    def _is_of_rows(self, operand: Operand, listed: Operand, rows: Place) -> bool:
        if not isinstance(operand, Access) or not isinstance(listed, Access):
            return isinstance(operand, float) and operand == listed
        if listed.base < self.step.loops.inputs:
            listed = listed._replace(base=listed.base + rows.base)
            return operand == listed._replace(lanes=(rows.per_row, *listed.lanes))
        return operand == listed._replace(lanes=(0, *listed.lanes))

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

    @cached_property
    def own(self) -> tuple[tuple[str, Place], ...]:
        """The areas with a separate part for each row taken together; empty if there are none."""
        return next((run.own for runs in self.step.routines.values() for run in runs if run.own), ())

    def _own_place(self, place: int) -> Optional[Place]:
        """The place of the current row that stands for a place of the listing; None if all rows share it."""
        area = self.step.area_of(place)
        own = dict(self.own).get(area.name)
        return Place(own.base + place - area.start, own.per_row) if own else None

    def _check_sum_of_rows(self, where: str, run: Run) -> None:
        """Check that a sink over rows with own areas has a term for each row, in order, and no other."""
        listed = self.loops[run.number]
        missing = len(run.loop.counts) - len(listed.counts)
        wanted: list[tuple[object, ...]] = []
        present: list[tuple[object, ...]] = []
        for segment, of_rows in zip(listed.segments, run.loop.segments):
            for operand, moved in zip(segment.operands, of_rows.operands):
                if isinstance(operand, Access) and isinstance(moved, Access):
                    place = self._own_place(operand.base) or Place(operand.base)
                    wanted.append((*place, operand.lanes))
                    present.append((moved.base, *moved.terms, moved.lanes[missing:][: len(operand.lanes)]))
                else:
                    wanted.append((operand,))
                    present.append((moved,))
        shape = [(segment.template, (run.rows,)) for segment in listed.segments]
        if (
            wanted != present
            or shape != [segment[:2] for segment in run.loop.segments]
            or run.loop.target.base != listed.target.base
            or run.loop.counts[missing:] != listed.counts
            or any(count != 1 for count in run.loop.counts[:missing])
        ):
            raise BrokenStep(f"{where} does not add the terms of {run.rows} rows in their order")

    def _check_saved(self, where: str, run: Run, state: State) -> None:
        """Check that a sink over several rows has a term for each row, in order: its inputs times its saved factor."""
        if self.own:
            self._check_sum_of_rows(where, run)
            return
        (segment,) = self.loops[run.number].segments
        x, factor = segment.operands
        assert isinstance(x, Access)
        assert isinstance(factor, Access)
        assert state.taken is not None
        size = self.loops[run.number].counts[-1]
        saved = [copy.to for copy in state.saved if copy.source == Place(factor.base) and copy.size == size]
        wanted = [
            replace(
                self.loops[run.number],
                segments=(
                    segment._replace(
                        counts=(run.rows,),
                        operands=(
                            x._replace(base=state.taken.base + x.base, terms=(state.taken.per_row,)),
                            factor._replace(base=place.base, terms=(place.per_row,)),
                        ),
                    ),
                ),
            )
            for place in saved
        ]
        if run.loop not in wanted:
            raise BrokenStep(f"{where} does not read the inputs and factors of {run.rows} rows in their order")

    _RULES: ClassVar[dict[type[Statement], Callable[..., Iterator[State]]]] = {
        TakeRow: _take_row,
        TakeRows: _take_rows,
        Give: _give,
        Perform: _perform,
        Guard: _guard,
        Update: _update,
        ClearSeeded: _clear_seeded,
        Copy: _copy,
        Set: _set,
        ListInputs: _list_inputs,
        ListRows: _list_rows,
        TurnLists: _turn_lists,
        CheckFactors: _check_factors,
        If: _if,
        EachRow: _each_row,
        Divided: _divided,
        KeepEarlier: _keep_earlier,
        EndTurn: _end_turn,
    }
    """Kind of statement -> its rule. The others have an effect only."""

    def _target(self, number: int) -> Span:
        return self.loops[number].target.extent(self.loops[number].counts)

    def _next(self, order: tuple[int, ...], done: Iterable[int]) -> Optional[int]:
        """The first loop that has not run."""
        passed = frozenset(done)  # searching a tuple of hundreds of loops would take seconds
        return next((number for number in order if number not in passed), None)
