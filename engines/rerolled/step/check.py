"""Check what no comparison of bits shows: places beyond an area, and threads that race. Runs if CHECKED is set.

- A copy stays within one area, and so do the rows taken together.
- Threads divide only runs in parts, rows in their own places, and updates. No thread reads what another one computes
  before they meet.

Tests compare the bits that a step trains with those of straight-line code. They notice each other mistake of a
rearrangement, such as a loop that does not run, or an update that is lost.
"""

from __future__ import annotations

from zoomgrad.engines.rerolled.recover.loops import Phase
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Place, walk
from zoomgrad.engines.rerolled.step.spans import reads
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
    if size < 1 or place.base < 0 or last > step.workspace:
        raise BrokenStep(f"{where} reaches from {place.base} to {last}, of {step.workspace} places")
    area = step.area_of(place.base)
    if last > area.stop:
        raise BrokenStep(f"{where} reaches beyond {area.name}")


def _check_division(step: Step, section: str, divided: steps.Divided) -> None:
    """Check that no thread reads what another thread writes, or writes what all threads read."""
    allowed = (steps.TakeRows, steps.Perform, steps.EachRow) if divided.by == "rows" else (steps.Perform, steps.Update)
    if not all(isinstance(s, allowed) for s in divided.body) or (len(divided.body) > 1 and divided.by == "lanes"):
        raise BrokenStep(f"{section}: something is divided by {divided.by} that can't be")
    performed = [statement for statement in walk(divided.body) if isinstance(statement, steps.Perform)]
    in_parts = {run for each in performed if each in divided.body for run in step.routines[each.routine]}
    runs = [run for each in performed for run in step.routines[each.routine]]
    for run in runs:
        where = f"{section}: loop {run.number}"
        if run.is_part != (run in in_parts):
            raise BrokenStep(f"{where} does not run as the threads do")
        if divided.by == "rows" and run.loop.phase == Phase.SINK:
            raise BrokenStep(f"{where} adds up rows, but rows are divided")
        if run.in_place and len(runs) > 1:
            raise BrokenStep(f"{where} updates in place while other loops run")
        # A sink reads no parameter except its lane's own if it updates in place: see `allows_updates_in_place`.
        written = run.loop.target.extent(run.loop.counts)
        for other in runs:
            if divided.by == "lanes" and not run.in_place and reads(other.loop, written):
                raise BrokenStep(f"{where} computes what other threads read in loop {other.number}")
