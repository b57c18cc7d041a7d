"""Rows of a batch in one turn of the step: places for each row, and loops over all rows.

Rows that are taken together do not share inputs, values and gradients: each row has a copy of the areas x, v, g and u.
`Step.own` is the distance of the copies from these areas. A loop that runs row by row is the same for each row, and for
a row alone: only the distance differs. A loop over all rows has a lane count, or a count of terms, for the rows.

Example: `v[i] = p[i] + x[i]` for i<4, where x and v start at places 100 and 108. If the first row's own places begin
900 places after x, and rows are 24 apart, own is Place(900, 24). For all rows the loop is
`own[8 + i + 24*row] = p[i] + own[i + 24*row]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from zoomgrad.engines.rerolled.form import has_strides
from zoomgrad.engines.rerolled.recover.loops import Access, Loop
from zoomgrad.engines.rerolled.step.language import Place, Run
from zoomgrad.engines.rerolled.step.step import Step


def own_size(step: Step) -> int:
    """The number of places for one row."""
    return step.area("u").stop - step.area("x").start


def of_first_row(step: Step, place: int) -> Place:
    """The place of the first row that stands for one in x, v, g or u, and its stride from row to row."""
    assert step.own is not None
    return Place(place + step.own.base, step.own.per_row)


def over_rows(step: Step, number: int, count: int) -> Run:
    """The loop of that number with an outer lane for each row."""
    loop = _moved(step, number, lambda access, stride: access._replace(lanes=(stride, *access.lanes)))
    return Run(number, replace(loop, counts=(count, *loop.counts)), rows=count)


def can_add_rows(sink: Loop) -> bool:
    """Whether tiles can add a sink's terms row by row: it has two lane counts, as a matrix has, and no inner sum."""
    return has_strides(sink) and len(sink.segments) == 1 and not sink.segments[0].counts and len(sink.counts) == 2


def add_rows(step: Step, number: int, count: int) -> Run:
    """The sink of that number with a term for each row."""
    loop = _moved(step, number, lambda access, stride: access._replace(terms=(stride,)))
    segments = tuple(segment._replace(counts=(count,)) for segment in loop.segments)
    return Run(number, replace(loop, target=loop.target._replace(terms=()), segments=segments), rows=count)


def _moved(step: Step, number: int, widened: Callable[[Access, int], Access]) -> Loop:
    """The loop of that number in the places of the first row.

    widened: an access and its stride from row to row, which is 0 for what all rows share -> the access for all rows.
    """

    def moved(access: Access) -> Access:
        place = of_first_row(step, access.base) if step.is_own(access.base) else Place(access.base)
        return widened(access._replace(base=place.base), place.per_row)

    return step.loops.loops[number].moved(moved)
