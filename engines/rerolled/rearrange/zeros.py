"""Zeros skipped: sums and sinks over inputs leave out inputs that are exactly 0.0, and no bit changes.

Most of an image is black. If w is finite, the term `w * 0.0` is a zero, and adding a zero to a sum changes at most the
sign of a zero, which engines may choose. The same holds for `q += 0.0 * g` if g is finite, and for `p -= rate * 0.0`.
If the factor is infinite or NaN, the term is NaN and must be added. Checking every weight would cost too much. Instead,
skipping is safe while two bounds are finite:

- A bound on the magnitude of the weights (`measure weights`). It is computed again after each dense update. An update
  of magnitude d that skips inputs raises it by at most d. Rounding changes a double by at most 2**-53 of its size; a
  limit of 1e300 leaves room for that.
- The sum of squares of inputs and of factors (`check factors`). It is infinite or NaN if one of them is, and it bounds
  their products. The row that ends a batch also multiplies by the rate of the coming update.

If either bound fails, the list holds every input, and the same code computes every term.

Example: for the inputs 0.0, 0.5, 0.0, 2.0 the list is 1, 3. A sum over four terms computes `w1 * 0.5 + w3 * 2.0`. If w0
were infinite, the list would be 0, 1, 2, 3, and the sum would be NaN as in the reference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Optional

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.weight_reuse import PRODUCT
from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.recover.loops import Access, Loops, Segment
from zoomgrad.engines.rerolled.step.language import (
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
from zoomgrad.engines.rerolled.step.spans import Span
from zoomgrad.engines.rerolled.step.step import Skipping, Step


class Live(NamedTuple):
    """The inputs to skip, and the loops that skip them, by number."""

    skipping: Skipping
    sums: dict[int, int]
    """Forward loop -> the segment whose terms run over nonzero inputs only."""
    sinks: dict[int, int]
    """Sink -> the lane count that runs over nonzero inputs only."""


def skip_zeros(step: Step, form: Form) -> Step:
    """Make sums and sinks over inputs visit only nonzero inputs."""
    skipped = live(step.loops)
    if skipped is None:
        return step
    start, stop = skipped.skipping.inputs
    step, _ = step.with_area("live", stop - start + 1)
    for name, runs in step.routines.items():
        step = step.with_routine(name, (_over_live(run, skipped) for run in runs))

    def change(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, TakeRow):
            return (statement, If(Unbounded(), (MeasureWeights(),)), ListInputs())
        if statement == Perform("gradients"):
            return (statement, CheckFactors())
        return (statement, MeasureWeights()) if isinstance(statement, Update) else (statement,)

    programs = step.programs
    return replace(step, skips=skipped.skipping).with_programs(
        forward=(ListInputs(every=True), *programs["forward"]),
        backward=(ListInputs(every=True), *programs["backward"]),
        enter=(*programs["enter"], MeasureWeights(), ListInputs(every=True)),
        turn=rewrite(programs["turn"], change),
        evaluate=rewrite(programs["evaluate"], change),
    )


def _over_live(run: Run, skipped: Live) -> Run:
    return replace(run, live_segment=skipped.sums.get(run.number), live_lane=skipped.sinks.get(run.number))


def live(loops: Loops) -> Optional[Live]:
    """The widest range of inputs that may be skipped in all products with parameters; None if there is none."""
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
    """The input and the other factor of a product, if both are affine and exactly one is an input."""
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
    """The lane count that runs over inputs, but not over the other factor. The innermost count is left for vectors."""
    moving = [lane for lane, stride in enumerate(x.lanes) if stride]
    if len(moving) != 1 or x.lanes[moving[0]] != 1 or other.lanes[moving[0]] or moving[0] == len(x.lanes) - 1:
        return None
    return moving[0]


def _written_by_others(loops: Loops, weights: tuple[Span, ...], sinks: dict[int, int]) -> bool:
    """Whether a sink without skipping adds to the gradients of these weights."""
    offset = loops.gradient_offset
    for at, loop in enumerate(loops.loops):
        if loop.phase == Phase.SINK and at not in sinks:
            start, stop = loop.target.extent(loop.counts)
            if any(start - offset < last and first < stop - offset for first, last in weights):
                return True
    return False
