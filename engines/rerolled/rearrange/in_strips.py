"""In strips: weights lie in the order in which tiles read them.

All tiles of a strip read the same lanes of a matrix, row after row. In a layer of 512 units, the rows are a page of
memory apart, and a processor prefetches within a page only. In a layer of 50 units, a strip of 8 is one of seven cache
lines of each row. Weights stored strip by strip are read one after the other. They stay in rows if the step skips
zeros, or if a loop reads them in another order. If they fit the second-level cache, strips must be one cache line wide.

Example: loop 0 of `mlp-784x512x10-b100` reads `p[520 + j + 520*t]` for 784 terms t and 512 lanes j. In strips of 8
lanes, lane l of strip i is `p[520 + 6272*i + l + 8*t]`.

Loops over one row take several strips at a time. The last strip has the lanes that are left: of 50, four strips of 8,
and one of 18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.form import Form, has_strides
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Copy, Loop
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.step import Step


class Part(NamedTuple):
    """Equal strips: the first lane, the lanes of each, and their number."""

    first: int
    lanes: int
    strips: int

    def over(self, counts: Sequence[int]) -> tuple[int, ...]:
        """The lane counts of a loop over the part, from those over the matrix. Several strips add a first count."""
        return (*[self.strips] * (self.strips > 1), *counts[:-1], self.lanes)


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

    def moved(self, place: int) -> int:
        """The place of a number once the matrix is stored in strips."""
        row, lane = divmod(place - self.base, self.apart)
        at, width = lane // self.strip * self.strip, self.strip
        if lane >= self.last:
            at, width = self.last, self.apart - self.last
        return self.base + self.rows * at + row * width + lane - at

    @property
    def parts(self) -> list[Part]:
        """The equal strips, and the last one if that is wider."""
        last = Part(self.last, self.lanes - self.last, 1)
        return [Part(0, self.strip, self.last // self.strip), *([last] if last.lanes else [])]

    def touches(self, access: Access, counts: Sequence[int], terms: Sequence[int] = ()) -> bool:
        """Whether an access over these counts of lanes and terms may be in the matrix."""
        first, stop = access.extent(counts, terms)
        return first < self.stop and self.base < stop

    def has_rows(self, access: Access, counts: Sequence[int], terms: Sequence[int] = ()) -> bool:
        """Whether an access goes over whole rows of the matrix."""
        *outer, lane = access.lanes or (0,)
        first, stop = access.extent(counts, terms)
        strides: tuple[Any, ...] = (access.base - self.base, *outer, *access.terms)
        is_inside = self.base <= first and stop <= self.stop and (lane, *counts[-1:]) == (1, self.lanes)
        return is_inside and not any(isinstance(stride, tuple) or stride % self.apart for stride in strides)

    def accesses(self, loop: Loop) -> list[tuple[Access, tuple[int, ...], tuple[int, ...]]]:
        """The target and the operands that may be in the matrix, each with its counts of lanes and terms."""
        reads = [(operand, loop.counts, loop.segments[number].counts) for number, _, operand in loop.reads()]
        return [access for access in ((loop.target, loop.counts, ()), *reads) if self.touches(*access)]

    def over(self, access: Access, part: Part) -> Access:
        """An access over a part. If that is several strips, the stride from strip to strip precedes all others."""
        moved: Callable[[int], int] = self.moved if self.base <= access.base < self.stop else int
        lane: Any
        *outer, lane = access.lanes
        start: Any = access.base + lane * part.first
        rows, terms = (tuple(moved(start + by) - moved(start) for by in steps) for steps in (outer, access.terms))
        strip = [moved(start + lane * part.lanes) - moved(start)] * (part.strips > 1)
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
    strip = form.width * form.tile(max(1, lanes // form.width))[1]
    block = form.accumulators * form.width // strip * strip
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
    copies: list[Copy] = []
    buffer = weights._replace(rows=0)  # without places, so it moves none
    for counts, place, entry in (cut for copy in step.loops.copies for cut in _cut(copy, weights)):
        if not weights.touches(place, counts):
            copies.append(Copy(counts, place, entry))
        elif not weights.has_rows(place, counts):
            return step
        else:
            copies += [Copy(p.over(counts), weights.over(place, p), buffer.over(entry, p)) for p in weights.parts]
    moved = {name: [list(_moved(run, matrices)) for run in runs] for name, runs in step.routines.items()}
    if any([] in runs for runs in moved.values()):
        return step
    routines = {name: tuple(chain(*runs)) for name, runs in moved.items()}
    return replace(step, routines=routines, loops=replace(step.loops, copies=copies))


def _cut(copy: Copy, matrix: Matrix) -> Iterator[Copy]:
    """The copy in pieces: the rows before the matrix, those in it, and those after it."""
    counts, (*_, rows, _) = copy.counts, copy.counts
    by: Any = copy.place.lanes[-2] or 1
    cuts = {min(max((edge - copy.place.base) // by, 0), rows) for edge in (matrix.base, matrix.stop)}
    for at, stop in zip(sorted({0, *cuts}), sorted({rows, *cuts} - {0})):
        moved = (access._replace(base=access.base + at * access.lanes[-2]) for access in copy[1:])
        yield Copy((*counts[:-2], stop - at, counts[-1]), *moved)


def _moved(run: Run, matrices: Sequence[Matrix]) -> Iterator[Run]:
    """The run if it uses no matrix; else runs over the strips of its matrix, or nothing if it uses that otherwise."""
    loop, due = run.loop, run.due
    touched = [(matrix, access) for matrix in matrices for access in matrix.accesses(loop)]
    matrix = touched[0][0] if touched else None
    if matrix is None:
        yield run
    elif has_strides(loop) and all(each == matrix and each.has_rows(*access) for each, access in touched):
        for part in matrix.parts:
            move, room = partial(matrix.over, part=part), loop.room - part.first if part.first else part.lanes
            yield replace(
                run,
                loop=replace(loop.moved(move), counts=part.over(loop.counts), room=room),
                due=due and due._replace(before=move(due.before), factor=move(due.factor)),
                in_strips=part.strips > 1,
                first=part.first,
            )
