"""Transposed: a matrix whose lanes are apart is copied with its lanes side by side, if many sums read it.

Vectors need lanes side by side. A copy takes one load and one store for each number, and serves all loops of a routine
until weights are updated. The order of terms stays, so no bit changes.

Example: for each of 100 points, loop 15 of `moons` reads the transpose of 16 x 16 weights:

    loop 15 transposed: for i<16 j<16: transposed[16*i + j] = p[79 - i + 16*j]
    loop 15: for i<100 j<16: g[1712 + 16*i + j] = sum(t<16: transposed[j + 16*t] * g[3327 + 16*i - t])
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.from_panels import turned
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Phase, Segment
from zoomgrad.engines.rerolled.recover.templates import SLOTS
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.step import Step

MANY = 8
"""A matrix is copied if at least this many of its products with a vector are computed, in all routines together."""


class Matrix(NamedTuple):
    """A number for each term and lane."""

    counts: tuple[int, int]
    access: Access


def transpose(step: Step, form: Form) -> Step:
    """Copy matrices that many sums read, unless threads would share the copies."""
    sums = Counter[Matrix]()
    for run in dict.fromkeys(chain(*step.routines.values())):  # routines share runs
        if matrix := _matrix(step, run, form.width):
            sums[matrix] += math.prod(run.loop.counts[:-1])
    many = [matrix for matrix in sums if sums[matrix] >= MANY]
    if not many or step.is_divided:
        return step
    sizes = [terms * step.whole_vectors(lanes) for (terms, lanes), _ in many]
    step, area = step.with_area("transposed", sum(sizes))
    bases = dict(zip(many, accumulate(sizes, initial=area.start)))
    for name, runs in step.routines.items():
        step = step.with_routine(name, _with_copies(step, runs, bases, form.width))
    return step


def _matrix(step: Step, run: Run, width: int) -> Optional[Matrix]:
    """The matrix that keeps a loop over one row from running in vectors; None if there is none."""
    loop = run.loop
    panel = turned(step, loop) if run == Run(run.number, loop) else None
    if panel is None or loop.target.lanes[-1] != 1 or not 1 < width <= loop.counts[-1]:
        return None
    segment = loop.segments[panel.segment]
    operand: Any = segment.operands[panel.slot]
    return Matrix((segment.counts[0], loop.counts[-1]), Access(operand.base, (*operand.terms, operand.lanes[-1])))


def _with_copies(step: Step, runs: Sequence[Run], bases: Mapping[Matrix, int], width: int) -> Iterator[Run]:
    """The runs of a routine. Before a matrix is first read, a further run copies it."""
    copied: list[Matrix] = []
    """Matrices whose copies are valid. An update changes weights; other numbers do not change once they are read."""
    for run in runs:
        matrix = _matrix(step, run, width)
        if matrix is not None and matrix in bases:
            apart = step.whole_vectors(matrix.counts[1])
            if matrix not in copied:
                copied.append(matrix)
                copy, to = Segment(SLOTS[0], (), (matrix.access,)), Access(bases[matrix], (apart, 1))
                loop = Loop(Phase.FORWARD, matrix.counts, to, matrix.counts[1], (copy,))
                yield Run(run.number, loop, transposes=True)
            run = replace(run, loop=run.loop.moved(partial(_from_copy, matrix, bases[matrix], apart)))
        yield run
        if run.takes_rate:
            copied.clear()


def _from_copy(matrix: Matrix, base: int, apart: int, access: Access) -> Access:
    """The access to the matrix's copy, if this is the access to the matrix; otherwise the same access."""
    *outer, lane = access.lanes or (0,)
    if Access(access.base, (*access.terms, lane)) != matrix.access:
        return access
    return Access(base, (*outer, 1), (apart,))
