"""In strips: weights larger than the second-level cache lie in the order in which tiles read them.

All tiles of a strip read the same lanes of a matrix, row after row. In a layer of 512 units, the rows are a page of
memory apart, and a processor prefetches within a page only. A panel would be a copy of these lanes, and making the copy
waits for each row. Stored strip by strip, the weights need no copy. No sum changes its order.

Example: loop 0 of `mlp-784x512x10-b100` reads `p[520 + j + 520*t]` for 784 terms t and 512 lanes j, and loop 12 changes
these weights. In strips of 8 lanes, a strip has 784 rows of 8 numbers. Lane j becomes lane l of strip i:

    for i<64 j<108 l<8: own[800 + 8*i + 2984*j + l] = p[8*i + l] + sum(t<784: p[520 + 6272*i + l + 8*t] * …)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Optional

from zoomgrad.engines.rerolled.form import Form, accesses, has_strides
from zoomgrad.engines.rerolled.recover.loops import Access
from zoomgrad.engines.rerolled.recover.nest import Stride
from zoomgrad.engines.rerolled.recover.places import ascending, copies_of
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.step import Step

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


class Matrix(NamedTuple):
    """Weights or their gradients: rows of lanes."""

    base: int
    rows: int
    apart: int
    """The distance from row to row."""
    strip: int
    """The lanes of a strip."""

    def has(self, access: Access) -> bool:
        return self.base <= access.base < self.base + self.rows * self.apart

    def has_rows(self, access: Access) -> bool:
        """Whether an access goes over whole rows, with the lanes as its last lane count."""
        *outer, lane = access.lanes
        strides = (access.base - self.base, *outer, *access.terms)
        return lane == 1 and all(isinstance(stride, int) and stride % self.apart == 0 for stride in strides)

    def in_strips(self, access: Access) -> Access:
        """The access with another lane count before all others: the strip."""
        *outer, lane = access.lanes
        assert isinstance(lane, int)
        if not self.has(access):
            return access._replace(lanes=(lane * self.strip, *outer, lane))
        base = self.base + self._down(access.base - self.base)
        lanes = (self.rows * self.strip, *map(self._down, outer), 1)
        return Access(base, lanes, tuple(map(self._down, access.terms)))

    def _down(self, distance: Stride) -> int:
        """A distance down the rows, within a strip."""
        assert isinstance(distance, int)
        return distance // self.apart * self.strip

    def places(self, places: Ints) -> Ints:
        """Places of parameters, with those of the matrix in strips."""
        import numpy as np

        row, lane = (places - self.base) // self.apart, (places - self.base) % self.apart
        moved: Ints = self.base + lane // self.strip * self.rows * self.strip + row * self.strip + lane % self.strip
        return np.where((row >= 0) & (row < self.rows), moved, places)


def store_in_strips(step: Step, form: Form) -> Step:
    """Store the weights of loops over rows in strips, instead of a panel for them."""
    if step.skips or step.is_divided:
        return step
    for run in [run for runs in step.routines.values() for run in runs]:
        weights = _weights(run, form)
        if weights:
            step = _stored(step, weights)
    return step


def _weights(run: Run, form: Form) -> Optional[Matrix]:
    """The weights that a loop over rows has a panel for, if whole strips fit into the room for its lanes."""
    if not run.panel or run.sums_rows:
        return None
    segment, lanes = run.loop.segments[run.panel.segment], run.loop.counts[-1]
    weights = segment.operands[run.panel.slot]
    strip = form.width * form.tile(-(-lanes // form.width))[1]
    if not isinstance(weights, Access) or weights.lanes != (0, 1) or -(-lanes // strip) * strip > run.loop.room:
        return None
    (apart,) = weights.terms
    assert isinstance(apart, int)
    return Matrix(weights.base, segment.counts[0], apart, strip)


def _stored(step: Step, weights: Matrix) -> Step:
    """The step with these weights and their gradients in strips; the same step if a loop goes over them differently."""
    gradients = weights._replace(base=weights.base + step.loops.gradient_offset)
    for run in [run for runs in step.routines.values() for run in runs]:
        for matrix in (weights, gradients):
            of_matrix = [access for access in accesses(run.loop) if matrix.has(access)]
            if of_matrix and not (has_strides(run.loop) and all(map(matrix.has_rows, of_matrix))):
                return step
    for name, runs in step.routines.items():
        step = step.with_routine(name, (_moved(run, weights, gradients) for run in runs))
    indices, places = step.loops.indices_and_places()
    places = weights.places(places)
    order = ascending(places)
    return replace(step, loops=replace(step.loops, copies=copies_of(places[order], indices[order])))


def _moved(run: Run, *matrices: Matrix) -> Run:
    """The run over matrices in strips."""
    loop, due = run.loop, run.due
    matrix = next((each for each in matrices if any(map(each.has, accesses(loop)))), None)
    if matrix is None:
        return run
    strips = -(-loop.counts[-1] // matrix.strip)
    counts = (strips, *loop.counts[:-1], matrix.strip)
    loop = replace(loop.moved(matrix.in_strips), counts=counts, room=matrix.strip)
    if due:
        due = due._replace(before=matrix.in_strips(due.before), factor=matrix.in_strips(due.factor))
    return replace(run, loop=loop, due=due, in_strips=True, panel=run.panel if run.sums_rows else None)
