"""Check what no comparison of bits shows: places beyond an area, and threads that race. Runs if CHECKED is set.

- A copy stays within one area, and so do the rows taken together.
- Threads divide only loops over all rows, rows in their own places, and updates. No thread reads what another one
  computes before they meet.

Tests compare the bits that a step trains with those of straight-line code. They notice each other mistake of a
rearrangement, such as a loop that does not run, or an update that is lost.
"""

from __future__ import annotations

from zoomgrad.engines.rerolled.recover.loops import Phase
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Place, walk
from zoomgrad.engines.rerolled.step.step import Step


class BrokenStep(Exception):
    """A step breaks a rule, which is a bug in a rearrangement. The message names the place and the rule."""


def check_step(step: Step) -> Step:
    """Return the step. Raises BrokenStep for the first broken rule."""
    for section, program in step.programs.items():
        for statement in walk(program):
            if isinstance(statement, steps.Copy):
                for place in (statement.to, statement.source):
                    _check_span(step, f"{section}: a copy", place, statement.size)
            if isinstance(statement, steps.TakeRows):
                _check_span(step, f"{section}: a row", statement.to, step.loops.inputs, statement.rows)
            if isinstance(statement, steps.Divided):
                _check_division(step, section, statement)
    return step


def _check_span(step: Step, where: str, place: Place, size: int, rows: int = 1) -> None:
    last = place.base + (rows - 1) * place.per_row + size
    area = step.area_of(max(place.base, 0))
    if size < 1 or place.base < 0 or last > area.stop:
        raise BrokenStep(f"{where} reaches from {place.base} to {last}, beyond {area.name}")


def _check_division(step: Step, section: str, divided: steps.Divided) -> None:
    """Check that threads divide rows in their own places, or the sinks of all rows: no loop reads a gradient."""
    allowed = (steps.TakeRows, steps.Perform, steps.EachRow) if divided.by == "rows" else (steps.Perform, steps.Update)
    if not all(isinstance(s, allowed) for s in divided.body) or (len(divided.body) > 1 and divided.by == "lanes"):
        raise BrokenStep(f"{section}: something is divided by {divided.by} that can't be")
    for statement in walk(divided.body):
        for run in step.routines[statement.routine] if isinstance(statement, steps.Perform) else ():
            where = f"{section}: loop {run.number}"
            if (run.rows > 1) != (statement in divided.body):
                raise BrokenStep(f"{where} does not run as the threads do")
            if (run.loop.phase == Phase.SINK) != (divided.by == "lanes") or run.in_place:
                raise BrokenStep(f"{where} can't be divided by {divided.by}")
