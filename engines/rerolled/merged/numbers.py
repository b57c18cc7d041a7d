"""The numbers of a loop, in a fixed order, and loops with other numbers.

Corresponding loops have the same kind and differ only in these: the place of the target and of each operand, strides,
counts of lanes and terms, and constants of the graph. Three things are part of the kind: lists of offsets, tables of
places, and an inner lane's stride of 0 or 1, because it decides whether lanes lie in vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Operand, Segment, Table
from zoomgrad.engines.rerolled.recover.nest import Stride
from zoomgrad.engines.rerolled.step.step import Step


class Facts(NamedTuple):
    """What a loop is compared by."""

    kind: int
    """The number of its kind."""
    run: tuple[object, ...]
    """What the loops of a run have in common: also constants, and strides of the target. Else products with different
    matrices would run in rounds, with counts that no compiler knows."""
    numbers: list[int]
    constants: list[float]


class Known:
    """The facts of loops. Graphs share loops, so those of each are found once."""

    def __init__(self, areas: Step) -> None:
        """areas: a step with the common areas."""
        self._areas = areas
        self._kinds: dict[object, int] = {}
        self._facts: dict[int, tuple[Loop, Facts]] = {}

    def __call__(self, loop: Loop) -> Facts:
        found = self._facts.get(id(loop))
        if not found:
            number = self._kinds.setdefault(kind(loop, self._areas), len(self._kinds))
            run = (number, loop.target.lanes, *map(repr, constants(loop)))
            # It keeps the loop, so no other one gets its id.
            found = self._facts[id(loop)] = loop, Facts(number, run, numbers(loop), constants(loop))
        return found[1]


def kind(loop: Loop, areas: Step) -> tuple[Any, ...]:
    """Everything but the numbers. areas: a step that has the areas."""
    parts = [(s.template, len(s.counts), *(_kind_of(operand, areas) for operand in s.operands)) for s in loop.segments]
    return (loop.phase, len(loop.counts), _kind_of(loop.target, areas), *parts)


def _kind_of(operand: Operand, areas: Step) -> tuple[Any, ...]:
    if isinstance(operand, float):
        return ("constant",)
    if isinstance(operand, Table):
        return ("table", operand.places.shape, *operand.places.ravel().tolist())
    access = operand
    return (
        areas.area_of(access.base).name,
        *_lanes(access),
        *(s if isinstance(s, tuple) else None for s in access.terms),
    )


def _lanes(access: Access) -> Iterator[Optional[Stride]]:
    """The strides of lanes that belong to the kind. None for those that are numbers."""
    inner = len(access.lanes) - 1
    for at, stride in enumerate(access.lanes):
        yield stride if isinstance(stride, tuple) or (at == inner and stride in (0, 1)) else None


def numbers(loop: Loop) -> list[int]:
    """Places, strides and counts."""
    found = [*_of(loop.target), *loop.counts]
    for segment in loop.segments:
        found += segment.counts
        for operand in segment.operands:
            if isinstance(operand, Access):
                found += _of(operand)
    return found


def _of(access: Access) -> list[int]:
    found = [access.base]
    found += [stride for stride, fixed in zip(access.lanes, _lanes(access)) if fixed is None]  # type: ignore[misc]
    found += [stride for stride in access.terms if not isinstance(stride, tuple)]
    return found


def places(loop: Loop) -> list[bool]:
    """For each of the numbers, whether it is a place."""
    found = [False] * len(numbers(loop))
    counted = with_numbers(loop, range(len(found)))
    for access in (counted.target, *(o for s in counted.segments for o in s.operands if isinstance(o, Access))):
        found[access.base] = True
    return found


def origins(loop: Loop, areas: Step) -> list[int]:
    """For each of the numbers, the start of the area if it is a place, else 0."""
    return [areas.area_of(x).start if is_place else 0 for x, is_place in zip(numbers(loop), places(loop))]


def with_numbers(loop: Loop, found: Iterable[int]) -> Loop:
    """The loop with other numbers."""
    rest = iter(found)

    def moved(access: Access) -> Access:
        base = next(rest)
        lanes = tuple(next(rest) if fixed is None else fixed for fixed in _lanes(access))
        return Access(base, lanes, tuple(s if isinstance(s, tuple) else next(rest) for s in access.terms))

    target = moved(loop.target)
    counts = tuple(next(rest) for _ in loop.counts)
    segments = []
    for segment in loop.segments:
        terms = tuple(next(rest) for _ in segment.counts)
        operands = tuple(moved(o) if isinstance(o, Access) else o for o in segment.operands)
        segments.append(Segment(segment.template, terms, operands))
    return Loop(loop.phase, counts, target, loop.room, tuple(segments))


def constants(loop: Loop) -> list[float]:
    """The constants of the graph among the operands."""
    return [operand for segment in loop.segments for operand in segment.operands if isinstance(operand, float)]


def with_constants(loop: Loop, found: Iterable[float]) -> Loop:
    """The loop with other constants."""
    rest = iter(found)
    segments = []
    for segment in loop.segments:
        operands: Iterator[Operand] = (next(rest) if isinstance(o, float) else o for o in segment.operands)
        segments.append(Segment(segment.template, segment.counts, tuple(operands)))
    return Loop(loop.phase, loop.counts, loop.target, loop.room, tuple(segments))
