"""Zeros skipped: inputs that are exactly 0.0 are left out of the sums and sinks over them, and no bit changes.

Most of an image is black. A term `w * 0.0` is a zero if w is finite. Adding a zero to a sum changes only the sign of a
zero, which is free. The same holds for `q += 0.0 * g` if g is finite, and for a parameter that goes down by
`rate * 0.0`. With an infinite or NaN factor the term is NaN, so it must be added. To check each weight would cost too
much. Skipping is safe while two bounds are finite:

- a bound on the magnitude of the weights in question (`measure weights`). It is found anew after each dense update. An
  update that skips and has magnitude d raises it by at most d. Rounding moves a double by a 2**-53rd: a limit of 1e300
  leaves room for that.
- the sum of squares of inputs and of factors (`check factors`). It is infinite or NaN if one of them is, and bounds
  their products. The row that ends a batch also multiplies by the rate of the coming update.

If either fails, every input is listed, and the same code computes every term.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Optional

from engines.rerolled.form import Form
from engines.rerolled.rearrange.weight_reuse import PRODUCT
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Loops, Segment
from engines.rerolled.step.language import (
    CheckFactors,
    If,
    ListInputs,
    MeasureWeights,
    Perform,
    Run,
    Statement,
    TakeRow,
    Unbounded,
    Update,
    rewrite,
)
from engines.rerolled.step.spans import Span
from engines.rerolled.step.step import Skipping, Step


class Live(NamedTuple):
    """What is skipped, and the loops that skip it, by their number."""

    skipping: Skipping
    sums: dict[int, int]
    """Forward loop -> which of its segments: its terms run over the inputs that are not zero."""
    sinks: dict[int, int]
    """Sink -> which of its lane counts does."""


def skip_zeros(step: Step, form: Form) -> Step:
    """Let sums and sinks over inputs visit only those that are not zero."""
    found = live(step.loops)
    if found is None:
        return step
    start, stop = found.skipping.inputs
    step, _ = step.with_area("live", stop - start + 1)
    for name, runs in step.routines.items():
        step = step.with_routine(name, (_over_live(run, found) for run in runs))

    def change(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, TakeRow):
            return (statement, If(Unbounded(), (MeasureWeights(),)), ListInputs())
        if statement == Perform("gradients"):
            return (statement, CheckFactors())
        return (statement, MeasureWeights()) if isinstance(statement, Update) else (statement,)

    programs = step.programs
    return replace(step, skips=found.skipping).with_programs(
        forward=(ListInputs(every=True), *programs["forward"]),
        backward=(ListInputs(every=True), *programs["backward"]),
        enter=(*programs["enter"], MeasureWeights(), ListInputs(every=True)),
        turn=rewrite(programs["turn"], change),
    )


def _over_live(run: Run, found: Live) -> Run:
    return replace(run, live_segment=found.sums.get(run.number), live_lane=found.sinks.get(run.number))


def live(loops: Loops) -> Optional[Live]:
    """The widest range of inputs that may be skipped wherever they meet parameters; None where there is none."""
    sums: dict[Span, list[tuple[int, int, Span]]] = {}
    sinks: dict[Span, list[tuple[int, int, Span]]] = {}
    for at, loop in enumerate(loops.loops):
        for index, segment in enumerate(loop.segments):
            x, other = _factors(loops, segment)
            if x is None or other is None:
                continue
            reads_weights = loops.area_of(other.base).name == "p"
            if loop.phase == Phase.FORWARD and _goes_over_terms(x) and reads_weights:
                span = (x.base, x.base + segment.counts[0])
                sums.setdefault(span, []).append((at, index, other.extent(loop.counts, segment.counts)))
            if loop.phase == Phase.SINK and len(loop.segments) == 1 and not segment.counts:
                lane = _lane_over(x, other)
                if lane is not None:
                    span = (x.base, x.base + loop.counts[lane])
                    sinks.setdefault(span, []).append((at, lane, other.extent(loop.counts)))
    for inputs in sorted(sums, key=lambda span: span[0] - span[1]):
        weights = tuple(extent for _, _, extent in sums[inputs])
        chosen = {at: lane for at, lane, _ in sinks.get(inputs, [])}
        if not _written_by_others(loops, weights, chosen):
            factors = tuple(dict.fromkeys(extent for _, _, extent in sinks.get(inputs, [])))
            return Live(Skipping(inputs, weights, factors), {at: index for at, index, _ in sums[inputs]}, chosen)
    return None


def _factors(loops: Loops, segment: Segment) -> tuple[Optional[Access], Optional[Access]]:
    """Of a product the input, and what it is multiplied with, both affine."""
    if segment.template != PRODUCT or not all(isinstance(o, Access) for o in segment.operands):
        return None, None
    is_input = [isinstance(o, Access) and loops.area_of(o.base).name == "x" for o in segment.operands]
    if sum(is_input) != 1:
        return None, None
    x, other = segment.operands if is_input[0] else reversed(segment.operands)
    return x, other  # type: ignore[return-value]  # both are accesses


def _goes_over_terms(x: Access) -> bool:
    return x.terms == (1,) and not any(x.lanes)


def _lane_over(x: Access, other: Access) -> Optional[int]:
    """The lane count that goes over inputs, which the other factor does not know; inner lanes are vectors' own."""
    moving = [lane for lane, stride in enumerate(x.lanes) if stride]
    if len(moving) != 1 or x.lanes[moving[0]] != 1 or other.lanes[moving[0]] or moving[0] == len(x.lanes) - 1:
        return None
    return moving[0]


def _written_by_others(loops: Loops, weights: tuple[Span, ...], sinks: dict[int, int]) -> bool:
    """Whether a sink that skips nothing adds to these parameters' gradients."""
    offset = loops.gradient_offset
    for at, loop in enumerate(loops.loops):
        if loop.phase == Phase.SINK and at not in sinks:
            start, stop = loop.target.extent(loop.counts)
            if any(start - offset < last and first < stop - offset for first, last in weights):
                return True
    return False
