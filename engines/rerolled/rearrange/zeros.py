"""Loops -> which of them may skip inputs that are 0.0, with every bit kept.

Most of an image is black. A term `w * 0.0` is a zero as long as w is finite; a sum that a zero is added to stays as it
is, but for the sign of a zero, which is free. So is `q += 0.0 * g` with a finite g, and a parameter that then goes down
by `rate * 0.0`. With an infinite or NaN factor the term is NaN, and must not be skipped. What it takes to know, without
looking at each weight:

- a bound on all skippable weights' magnitude, found anew after each dense update; a skipping update of magnitude d
  raises it by d at most (rounding moves a double by a 2**-53rd: a limit of 1e300 leaves room for that);
- the sum of squares of inputs and of gradients: infinite or NaN where one of them is, and a bound on their products.

Where either fails no input is skipped, and the same code computes every term.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from engines.rerolled.rearrange.weight_reuse import PRODUCT
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Loops, Segment

Span = tuple[int, int]
"""Start and stop of places in the workspace."""


class Skipping(NamedTuple):
    """The inputs whose zeros are skipped, and the loops that do so, by their number."""

    inputs: Span
    sums: dict[int, int]
    """Forward loop -> which of its segments: its terms run over the inputs that are not zero."""
    sinks: dict[int, int]
    """Sink -> which of its lane counts does."""
    weights: tuple[Span, ...]
    factors: tuple[Span, ...]
    """What the sinks multiply inputs with."""


def skipping(loops: Loops) -> Optional[Skipping]:
    """The widest range of inputs that may be skipped wherever they meet parameters; None where there is none."""
    sums: dict[Span, list[tuple[int, int, Span]]] = {}
    sinks: dict[Span, list[tuple[int, int, Span]]] = {}
    for at, loop in enumerate(loops.loops):
        for index, segment in enumerate(loop.segments):
            x, other = _factors(loops, segment)
            if (
                x
                and other
                and loop.phase == Phase.FORWARD
                and _goes_over_terms(x)
                and loops.area_of(other.base).name == "p"
            ):
                span = (x.base, x.base + segment.counts[0])
                sums.setdefault(span, []).append((at, index, other.extent(loop.counts, segment.counts)))
            if x and other and loop.phase == Phase.SINK and len(loop.segments) == 1 and not segment.counts:
                lane = _lane_over(x, other)
                if lane is not None:
                    span = (x.base, x.base + loop.counts[lane])
                    sinks.setdefault(span, []).append((at, lane, other.extent(loop.counts)))
    for inputs in sorted(sums, key=lambda span: span[0] - span[1]):
        weights = tuple(extent for _, _, extent in sums[inputs])
        chosen = {at: lane for at, lane, _ in sinks.get(inputs, [])}
        if not _written_by_others(loops, weights, chosen):
            factors = tuple(dict.fromkeys(extent for _, _, extent in sinks.get(inputs, [])))
            return Skipping(inputs, {at: index for at, index, _ in sums[inputs]}, chosen, weights, factors)
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
    away = loops.area("q").start - loops.area("p").start
    for at, loop in enumerate(loops.loops):
        if loop.phase == Phase.SINK and at not in sinks:
            start, stop = loop.target.extent(loop.counts)
            if any(start - away < last and first < stop - away for first, last in weights):
                return True
    return False
