"""Numbers -> loop nests: the shortest list of affine pieces that gives a sequence of addresses back.

A piece is a nest of counted loops, each with a fixed stride. Several sequences may be cut at once, into pieces that
serve them all: the addresses of all operands of a loop.
"""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

if TYPE_CHECKING:
    from engines.rerolled.recover.sums import Ints


Stride = Union[int, tuple[int, ...]]
"""A step; or, where steps differ, the offset of each place."""


class Nest(NamedTuple):
    """A stretch of the sequences: from `start` on, digits of `counts` (outermost first) times their strides."""

    start: int
    counts: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    """For each count, each sequence's stride."""

    @property
    def size(self) -> int:
        size = 1
        for count in self.counts:
            size *= count
        return size


def nests(sequences: Ints, breaks: Any = None) -> list[Nest]:
    """Pieces that follow one another and cover everything.

    sequences: integers, shape (sequences, length). breaks: positions, as a mask of length - 1, after which a new piece
    must begin.
    """
    import numpy as np

    length = sequences.shape[1]
    steps = np.diff(sequences, axis=1)
    bent = np.ones(length, bool)
    """Whether the step after a position differs from the one before it."""
    bent[1:-1] = (steps[:, 1:] != steps[:, :-1]).any(axis=0)
    barred = np.zeros(length, bool)
    if breaks is not None:
        barred[:-1] = breaks
        bent |= barred
        bent[1:] |= barred[:-1]
    runs: list[tuple[int, int]] = []
    corners = np.flatnonzero(bent).tolist()
    is_barred = barred.tolist()
    start = index = 0
    while start < length:
        while corners[index] < start:
            index += 1
        # The run ends at the first corner after its start: there the next step is another one.
        stop = start
        if not is_barred[start] and start < length - 1:
            after = index + 1 if corners[index] == start else index
            stop = corners[after]
            # Of three positions the last two may belong together: `a  b c d`, not `a b  c d`.
            if stop == start + 1 and stop + 1 < length and not bent[stop + 1] and not is_barred[stop]:
                stop = start
        runs.append((start, stop + 1))
        start = stop + 1
    starts = [start for start, _ in runs]
    first = dict(zip(starts, sequences[:, starts].T.tolist()))
    step = np.append(steps, sequences[:, :1], axis=1)[:, starts].T.tolist()  # that of a single last one is not used
    pieces = [
        Nest(start, (stop - start,), (tuple(by),)) if stop - start > 1 else Nest(start, (), ())
        for (start, stop), by in zip(runs, step)
    ]
    return _rerolled(first, pieces, is_barred)


def _rerolled(first: dict[int, list[int]], pieces: list[Nest], is_barred: list[bool]) -> list[Nest]:
    """Pieces of equal shape at equal distances become one, again and again.

    first: where a piece starts -> what the sequences hold there.
    """
    while True:
        outer: list[Nest] = []
        index = 0
        while index < len(pieces):
            piece = pieces[index]
            repeats = 1
            distance: tuple[int, ...] = ()
            while index + repeats < len(pieces) and not is_barred[pieces[index + repeats].start - 1]:
                following = pieces[index + repeats]
                if following[1:] != piece[1:]:
                    break
                last = first[pieces[index + repeats - 1].start]
                between = tuple(map(sub, first[following.start], last))
                if repeats > 1 and between != distance:
                    break
                distance = between
                repeats += 1
            if repeats > 1:
                piece = Nest(piece.start, (repeats, *piece.counts), (distance, *piece.strides))
            outer.append(piece)
            index += repeats
        if len(outer) == len(pieces):
            return outer
        pieces = outer


def strides(sequence: Ints, counts: tuple[int, ...]) -> Optional[tuple[Stride, ...]]:
    """What each of these counted loops adds to the first place, each for itself; None where they depend on another."""
    import numpy as np

    cube = sequence.reshape(counts) - sequence[0]
    rest = cube
    found: list[Stride] = []
    for axis, count in enumerate(counts):
        line = cube[tuple(slice(None) if other == axis else 0 for other in range(len(counts)))]
        rest = rest - line.reshape([count if other == axis else 1 for other in range(len(counts))])
        step = int(line[1]) if count > 1 else 0
        found.append(step if (line == step * np.arange(count)).all() else tuple(line.tolist()))
    return None if rest.any() else tuple(found)
