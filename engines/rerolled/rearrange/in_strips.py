"""In strips: weights lie in the order in which tiles read them.

All tiles of a strip read the same lanes of a matrix, row after row. In a layer of 512 units, the rows are a page of
memory apart, and a processor prefetches within a page only. In a layer of 50 units, a strip of 8 is one of seven cache
lines of each row. Weights stored strip by strip are read one after the other. They stay in rows if the step skips
zeros, if a loop goes over them in another way, or if they fit the second-level cache and a strip is no cache line.

Example: loop 0 of `mlp-784x512x10-b100` reads `p[520 + j + 520*t]` for 784 terms t and 512 lanes j, and loop 12 changes
these weights. In strips of 8 lanes, a strip has 784 rows of 8 numbers. Lane j becomes lane l of strip i:

    for i<64 j<108 l<8: own[800 + 8*i + 2984*j + l] = p[8*i + l] + sum(t<784: p[520 + 6272*i + l + 8*t] * …)

A loop over one row has the sums of several strips in a block. If such blocks do not divide the lanes, the last strip
is wider: 50 lanes are four strips of 8, and one of 18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.form import Form, has_strides
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Loop
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.step import Step


class Matrix(NamedTuple):
    """Weights or their gradients: rows of lanes."""

    base: int
    rows: int
    apart: int
    """The distance from row to row."""
    lanes: int
    strip: int
    """The lanes of a strip."""
    last: int
    """The first lane of the last strip, if that is wider than the others; otherwise the number of lanes."""

    @property
    def stop(self) -> int:
        return self.base + self.rows * self.apart

    def moved(self, place: Any) -> Any:
        """The place of a number once the matrix is stored in strips. place: an integer, or an array of them."""
        row, lane = divmod(place - self.base, self.apart)
        is_last = lane >= self.last
        at = lane // self.strip * self.strip * (1 - is_last) + self.last * is_last
        width = self.strip + (self.apart - self.last - self.strip) * is_last
        return self.base + self.rows * at + row * width + lane - at

    def accesses(self, loop: Loop) -> list[tuple[Access, int, int]]:
        """The target and the operands that may lie in the matrix, each with its first place and that after its last."""
        every = [(loop.target, ()), *((operand, loop.segments[number].counts) for number, _, operand in loop.reads())]
        extents = [(access, *access.extent(loop.counts, counts)) for access, counts in every]
        return [each for each in extents if each[1] < self.stop and self.base < each[2]]

    def has_rows(self, loop: Loop) -> bool:
        """Whether the loop goes over the matrix's lanes, and its accesses to the matrix go over whole rows."""
        for access, first, stop in self.accesses(loop):
            *outer, lane = access.lanes or (0,)
            strides: tuple[Any, ...] = (access.base - self.base, *outer, *access.terms)
            is_inside = self.base <= first and stop <= self.stop and lane == 1
            if not is_inside or any(stride % self.apart for stride in strides):
                return False
        return loop.counts[-1:] == (self.lanes,)

    def over_strips(self, access: Access, first: int, lanes: int, count: int) -> Access:
        """The access over some strips. If there are several, the stride from strip to strip precedes all others."""
        moved: Callable[[int], int] = self.moved if self.base <= access.base < self.stop else int
        lane: Any
        *outer, lane = access.lanes
        start: Any = access.base + lane * first
        rows, terms = (tuple(moved(start + by) - moved(start) for by in steps) for steps in (outer, access.terms))
        strip = [moved(start + lane * lanes) - moved(start)] * (count > 1)
        return Access(moved(start), (*strip, *rows, lane), terms)


def store_in_strips(step: Step, form: Form) -> Step:
    """Store the weights of loops over rows in strips."""
    if step.skips:
        return step
    for run in [run for runs in step.routines.values() for run in runs]:
        weights = _weights(run, form)
        if weights and (form.is_beyond_cache(step.loops.parameters) or weights.strip == VECTOR):
            step = _stored(step, weights)
    return step


def _weights(run: Run, form: Form) -> Optional[Matrix]:
    """The weights that the tiles of a loop over rows share, if they fill several strips."""
    if run.rows == 1 or run.sums_rows:
        return None
    lanes = run.loop.counts[-1]
    wide = form.tile(max(1, lanes // form.width))[1]
    strip = form.width * wide
    block = form.accumulators // wide * strip
    is_even = lanes % block == 0 or (lanes < block and lanes % strip == 0)
    last = lanes if is_even else (lanes - strip) // block * block
    for number, _, weights in run.loop.reads():
        apart: Any = weights.terms[0] if len(weights.terms) == 1 else 0
        if weights.lanes == (0, 1) and isinstance(apart, int) and 0 < last <= lanes <= apart and strip < lanes:
            return Matrix(weights.base, run.loop.segments[number].counts[0], apart, lanes, strip, last)
    return None


def _stored(step: Step, weights: Matrix) -> Step:
    """The step with these weights and their gradients in strips; the same step if a loop goes over them differently."""
    away = step.loops.gradient_offset
    matrices = (weights, weights._replace(base=weights.base + away))
    # An update may leave out the places of one sink, so each sink of the weights must go over all of them.
    sinks = {loop.counts for loop in step.loops.loops if matrices[1].accesses(loop)}
    shown = (step.loops.loss, *step.loops.outputs)
    if sinks != {(weights.rows, weights.lanes)} or any(weights.base <= at.base < weights.stop for at in shown):
        return step
    for loop in [run.loop for runs in step.routines.values() for run in runs]:
        touched = [matrix for matrix in matrices if matrix.accesses(loop)]
        if len(touched) > 1 or not all(has_strides(loop) and matrix.has_rows(loop) for matrix in touched):
            return step
    for name, runs in step.routines.items():
        step = step.with_routine(name, (moved for run in runs for moved in _moved(run, matrices)))
    from zoomgrad.engines.rerolled.recover.places import ascending, copies_of  # it imports NumPy

    indices, places = step.loops.indices_and_places()
    is_inside = (places >= weights.base) & (places < weights.stop)
    places[is_inside] = weights.moved(places[is_inside])
    order = ascending(places)
    return replace(step, loops=replace(step.loops, copies=copies_of(places[order], indices[order])))


def _moved(run: Run, matrices: Sequence[Matrix]) -> Iterator[Run]:
    """The run over matrices in strips; and a run over the last strip, if that has more lanes than the others."""
    loop, due = run.loop, run.due
    matrix = next((each for each in matrices if each.accesses(loop)), None)
    if matrix is None:
        yield run
        return
    strip, last = matrix.strip, matrix.last
    parts = [(0, strip, last // strip)] + [(last, matrix.lanes - last, 1)] * (last < matrix.lanes)
    for first, lanes, count in parts:
        move = partial(matrix.over_strips, first=first, lanes=lanes, count=count)
        counts = (*[count] * (count > 1), *loop.counts[:-1], lanes)
        yield replace(
            run,
            loop=replace(loop.moved(move), counts=counts, room=loop.room - first if first else strip),
            due=due and due._replace(before=move(due.before), factor=move(due.factor)),
            in_strips=count > 1,
            first=first,
        )
