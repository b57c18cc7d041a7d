"""Check a step. An error names the first broken rule. Runs after each rearrangement if CHECKED is set.

The checker follows every way through `turn` and `leave`, with every possible answer to each condition, and requires:

- A row is taken before its values are computed, and its loss is recorded before any gradient is computed.
- Each loop runs once for each row: forward loops in the listing's order, then backward loops, then sinks in any order.
  A sink adds to its gradient, updates in place, or defers its update.
- Only a row that is alone updates in place or defers an update. A deferred update is made before another loop reads its
  weights, and before training leaves.
- If the loss is a parameter, its gradient is cleared before its sink adds 1 to it.
- Rows whose gradients are added are counted, and the end of a batch updates the parameters.
- A run that skips zeros has a list of this row's inputs. A sink's list was made after a check of its factors.
- If one of the rows taken together fails, the sinks of all rows run for the rows before it.
- Threads divide only runs in parts, rows in their own areas, and updates. No thread reads what another one computes
  before they meet.
- A copy stays within one area.
- A series has the listing's loops, and a routine runs all of it or nothing.

The checker does not compare results, nor the places of several rows; tests check that the bits are the same.
"""

from __future__ import annotations

from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.step.language import (
    SECTIONS,
    CheckFactors,
    Copy,
    ListRows,
    Perform,
    Place,
    Program,
    TakeRows,
    walk,
)
from zoomgrad.engines.rerolled.step.series import kind
from zoomgrad.engines.rerolled.step.spans import allows_updates_in_place
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.rerolled.step.ways import BrokenStep, Ways


def check_step(step: Step) -> Step:
    """Return the step. Raises BrokenStep."""
    if set(step.programs) != set(SECTIONS):
        raise BrokenStep(f"the sections are {', '.join(step.programs)}, not {', '.join(SECTIONS)}")
    for name, program in step.programs.items():
        _check_places(step, name, program)
    _check_runs(step)
    _check_series(step)
    ways = Ways(step)
    for due in (False, True) if ways.waiting is not None else (False,):
        ways.check(due)
    return step


def _check_places(step: Step, section: str, program: Program) -> None:
    """Check that routines exist, and that each copy stays within one area."""
    for statement in walk(program):
        if isinstance(statement, Perform) and statement.routine not in step.routines:
            raise BrokenStep(f"{section}: there is no routine {statement.routine!r}")
        if isinstance(statement, Copy):
            for place in (statement.to, statement.source):
                _check_span(step, f"{section}: a copy", place, statement.size)
        if isinstance(statement, TakeRows):
            _check_span(step, f"{section}: a row", statement.to, step.loops.inputs, statement.rows)
        if isinstance(statement, (ListRows, CheckFactors)) and statement.at is not None:
            _check_span(step, f"{section}: a list", statement.at, step.loops.inputs)


def _check_span(step: Step, where: str, place: Place, size: int, rows: int = 1) -> None:
    last = place.base + (rows - 1) * place.per_row + size
    if size < 1 or place.base < 0 or last > step.workspace:
        raise BrokenStep(f"{where} reaches from {place.base} to {last}, of {step.workspace} places")
    area = step.area_of(place.base)
    if last > area.stop:
        raise BrokenStep(f"{where} reaches beyond {area.name}")


def _check_runs(step: Step) -> None:
    """Check that a run's loop is the one in the listing, unless it serves several rows or the previous row."""
    if any(run.in_place for runs in step.routines.values() for run in runs) and not allows_updates_in_place(step.loops):
        raise BrokenStep("an update in place changes a parameter that another gradient still needs")
    for name, runs in step.routines.items():
        for run in runs:
            listed = step.loops.loops[run.number]
            where = f"{name}: loop {run.number}"
            if run.in_place and listed.phase != Phase.SINK:
                raise BrokenStep(f"{where} updates parameters but is not a sink")
            if run.rows == 1 and not run.is_before and run.loop is not listed:
                raise BrokenStep(f"{where} differs from the listing's loop")


def _check_series(step: Step) -> None:
    """Check that each series is a part of the listing, and that a routine runs all of it in order, or nothing."""
    stop = 0
    for series in step.series:
        loops, listed = list(series.loops()), step.loops.loops[series.first : series.stop]
        if series.first < stop or loops != listed or list(map(kind, loops)) != list(map(kind, listed)):
            raise BrokenStep(f"{series}: the listing has other loops there")
        stop = series.stop
        wanted = list(range(series.first, series.stop))
        for name, runs in step.routines.items():
            inside = [(at, run) for at, run in enumerate(runs) if series.first <= run.number < series.stop]
            places = [at - inside[0][0] for at, _ in inside]
            if inside and ([run.number for _, run in inside] != wanted or places != list(range(len(inside)))):
                raise BrokenStep(f"{name}: it does not run all of {series}, one after the other")
            if not all(run.is_plain for _, run in inside):
                raise BrokenStep(f"{name}: {series} would run in another way")
