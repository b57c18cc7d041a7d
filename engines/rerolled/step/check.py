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

from dataclasses import replace

from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Loop
from engines.rerolled.step.language import (
    SECTIONS,
    Copy,
    Give,
    ListInputs,
    MeasureWeights,
    Perform,
    Place,
    Program,
    Take,
    TakeRows,
    walk,
)
from engines.rerolled.step.spans import allows_updates_in_place
from engines.rerolled.step.step import Step
from engines.rerolled.step.ways import BrokenStep, Ways


def check_step(step: Step) -> Step:
    """The step itself. Raises BrokenStep."""
    if set(step.programs) != set(SECTIONS):
        raise BrokenStep(f"the sections are {', '.join(step.programs)}, not {', '.join(SECTIONS)}")
    for name, program in step.programs.items():
        _check_places(step, name, program)
    _check_pass(step, "forward", (Phase.FORWARD,))
    _check_pass(step, "backward", (Phase.BACKWARD, Phase.SINK))
    _check_buffers(step)
    _check_runs(step)
    ways = Ways(step)
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


def _check_buffers(step: Step) -> None:
    """Each section takes what its loops read before they run, and gives what they computed after that."""
    gives_outputs = Give("outputs") in step.programs["turn"]
    wanted = {
        "forward": (Take("inputs"), Take("parameters"), Perform("values"), Give("outputs")),
        "backward": (Take("gradients"), Perform("gradients"), Perform("sinks"), Give("gradients")),
        "enter": (Take("parameters"), Take("gradients")),
        "leave": tuple(
            Give(what) for what in ("inputs", *([] if gives_outputs else ["outputs"]), "parameters", "gradients")
        ),
    }
    for name, statements in wanted.items():
        found = tuple(s for s in step.programs[name] if isinstance(s, (Take, Give, Perform)))
        if found != statements:
            raise BrokenStep(f"{name}: it is {', '.join(map(str, found))}, not {', '.join(map(str, statements))}")
    if step.skips and MeasureWeights() not in step.programs["enter"]:
        raise BrokenStep("enter: weights are not measured")


def _check_runs(step: Step) -> None:
    """A run is of the listing's own loop, except where it belongs to several rows or to the row before."""
    if any(run.in_place for runs in step.routines.values() for run in runs) and not allows_updates_in_place(step.loops):
        raise BrokenStep("an update in place changes a parameter that another gradient still needs")
    for name, runs in step.routines.items():
        for run in runs:
            listed = step.loops.loops[run.number]
            where = f"{name}: loop {run.number}"
            if run.in_place and listed.phase != Phase.SINK:
                raise BrokenStep(f"{where} updates parameters, and is no sink")
            if run.rows == 1 and not run.is_before and run.loop is not listed:
                raise BrokenStep(f"{where} is another loop than the listing's")
            if run.is_before and not (run.in_place and run.loop == _of_kept_inputs(step, listed)):
                raise BrokenStep(f"{where} is not the listing's sink over the inputs that are kept")


def _of_kept_inputs(step: Step, sink: Loop) -> Loop:
    """The sink, over the inputs of the row before."""
    dues = [run.due for runs in step.routines.values() for run in runs if run.due]
    if not dues:
        raise BrokenStep("an update waits that no forward loop makes")
    kept = dues[0].before
    (segment,) = sink.segments
    x, factor = segment.operands
    assert isinstance(x, Access)
    return replace(sink, segments=(segment._replace(operands=(x._replace(base=kept.base), factor)),))
