"""In strips: weights larger than the second-level cache lie in the order in which tiles read them.

All tiles of a strip read the same lanes of a matrix, row after row. In a layer of 512 units, the rows are a page of
memory apart, so a panel waits for each row that it copies. Weights stored strip by strip need no panel. They stay in
rows if threads divide the step, if it skips zeros, or if a loop goes over them in another way.

Example: loop 0 of `mlp-784x512x10-b100` reads `p[520 + j + 520*t]` for 784 terms t and 512 lanes j, and loop 12 changes
these weights. In strips of 8 lanes, a strip has 784 rows of 8 numbers. Lane j becomes lane l of strip i:

    for i<64 j<108 l<8: own[800 + 8*i + 2984*j + l] = p[8*i + l] + sum(t<784: p[520 + 6272*i + l + 8*t] * …)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.form import Form, has_strides
from zoomgrad.engines.rerolled.recover.loops import Access, Loop
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.step import Step

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


class Matrix(NamedTuple):
    """Weights or their gradients: rows of lanes."""

    base: int
    stop: int
    rows: int
    apart: int
    """The distance from row to row."""
    lanes: int
    strip: int
    """The lanes of a strip."""
    whole: int
    """The lanes of all strips."""

    def accesses(self, loop: Loop) -> list[tuple[Access, int, int]]:
        """The target and the operands that may lie in the matrix: of each, its first place, and that after its last."""
        every = [(loop.target, ()), *((operand, loop.segments[number].counts) for number, _, operand in loop.reads())]
        extents = [(access, *access.extent(loop.counts, counts)) for access, counts in every]
        return [each for each in extents if each[1] < self.stop and self.base < each[2]]

    def has_rows(self, loop: Loop) -> bool:
        """Whether the loop has the lanes, room for whole strips, and only accesses over whole rows in the matrix."""
        has_lanes = has_strides(loop) and loop.counts[-1:] == (self.lanes,) and loop.room >= self.whole
        return has_lanes and all(self._has(*each) for each in self.accesses(loop))

    def _has(self, access: Access, first: int, stop: int) -> bool:
        """Whether an access goes over whole rows."""
        *outer, lane = access.lanes
        strides: tuple[Any, ...] = (access.base - self.base, *outer, *access.terms)
        is_inside = self.base <= first and stop <= self.stop
        return is_inside and lane == 1 and not any(stride % self.apart for stride in strides)

    def in_strips(self, access: Access) -> Access:
        """The access with another lane count before all others: the strip."""
        *outer, lane = access.lanes
        assert isinstance(lane, int)
        if not self.base <= access.base < self.stop:
            return access._replace(lanes=(lane * self.strip, *outer, lane))
        base = self.base + self._down(access.base - self.base)
        lanes = (self.rows * self.strip, *map(self._down, outer), 1)
        return Access(base, lanes, tuple(map(self._down, access.terms)))

    def _down(self, distance: Any) -> int:
        """A distance down the rows, within a strip."""
        return int(distance) // self.apart * self.strip

    def places(self, places: Ints) -> Ints:
        """The places of parameters once the matrix is stored in strips."""
        row, lane = (places - self.base) // self.apart, (places - self.base) % self.apart
        moved: Ints = self.base + lane // self.strip * self.rows * self.strip + row * self.strip + lane % self.strip
        new: Ints = places + (moved - places) * ((row >= 0) & (row < self.rows))
        return new


def store_in_strips(step: Step, form: Form) -> Step:
    """Store the weights of loops over rows in strips, instead of a panel for them."""
    if step.skips or step.is_divided:
        return step
    for run in [run for runs in step.routines.values() for run in runs]:
        if weights := _weights(run, form):
            step = _stored(step, weights)
    return step


def _weights(run: Run, form: Form) -> Optional[Matrix]:
    """The weights that a loop over rows has a panel for, if whole strips fit into the rows."""
    if not run.panel or run.sums_rows:
        return None
    segment, lanes = run.loop.segments[run.panel.segment], run.loop.counts[-1]
    weights = segment.operands[run.panel.slot]
    if not isinstance(weights, Access) or weights.lanes != (0, 1):
        return None
    apart: Any = weights.terms[0]
    strip = form.width * form.tile(-(-lanes // form.width))[1]
    rows, whole = segment.counts[0], -(-lanes // strip) * strip
    stop = weights.base + rows * apart
    return Matrix(weights.base, stop, rows, apart, lanes, strip, whole) if whole <= apart else None


def _stored(step: Step, weights: Matrix) -> Step:
    """The step with these weights and their gradients in strips; the same step if a loop goes over them differently."""
    away = step.loops.gradient_offset
    matrices = (weights, weights._replace(base=weights.base + away, stop=weights.stop + away))
    # An update may leave out the places of one sink, so each sink of the weights must go over all of them.
    sinks = {loop.counts for loop in step.loops.loops if matrices[1].accesses(loop)}
    shown = (step.loops.loss, *step.loops.outputs)
    if sinks != {(weights.rows, weights.lanes)} or any(weights.base <= at.base < weights.stop for at in shown):
        return step
    for loop in [run.loop for runs in step.routines.values() for run in runs]:
        touched = [matrix for matrix in matrices if matrix.accesses(loop)]
        if len(touched) > 1 or not all(matrix.has_rows(loop) for matrix in touched):
            return step
    for name, runs in step.routines.items():
        step = step.with_routine(name, (_moved(run, matrices) for run in runs))
    from zoomgrad.engines.rerolled.recover.places import ascending, copies_of  # it imports NumPy

    indices, places = step.loops.indices_and_places()
    order = ascending(places := weights.places(places))
    return replace(step, loops=replace(step.loops, copies=copies_of(places[order], indices[order])))


def _moved(run: Run, matrices: Sequence[Matrix]) -> Run:
    """The run over matrices in strips."""
    loop, due = run.loop, run.due
    matrix = next((each for each in matrices if each.accesses(loop)), None)
    if matrix is None:
        return run
    counts = (matrix.whole // matrix.strip, *loop.counts[:-1], matrix.strip)
    loop = replace(loop.moved(matrix.in_strips), counts=counts, room=matrix.strip)
    if due:
        due = due._replace(before=matrix.in_strips(due.before), factor=matrix.in_strips(due.factor))
    return replace(run, loop=loop, due=due, in_strips=True, panel=run.panel if run.sums_rows else None)
