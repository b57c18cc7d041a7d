"""Numbers -> loop nests: cut sequences of addresses into affine pieces.

A piece is a nest of counted loops, each with a fixed stride. Several sequences, such as the addresses of all operands
of a loop, may be cut together at the same positions. The algorithm finds runs greedily from left to right, then merges
equal runs at equal distances until nothing changes. The number of pieces is small, but not always minimal.

Example: a filter of 3 weights at addresses 50 to 52 slides over 5 inputs at addresses 0 to 4. Runs of 3 with strides
(1, 1) start at (0, 50), (1, 50) and (2, 50), at equal distances of (1, 0). Merged, they form a single nest:

    >>> inputs = [0, 1, 2, 1, 2, 3, 2, 3, 4]
    >>> weights = [50, 51, 52, 50, 51, 52, 50, 51, 52]
    >>> nests(np.array([inputs, weights]))
    [Nest(start=0, counts=(3, 3), strides=((1, 0), (1, 1)))]

It gives the address `0 + 1*i + 1*j` for inputs and `50 + 0*i + 1*j` for weights. Another address that does not fit
becomes a separate piece:

    >>> nests(np.array([[*inputs, 90]]))
    [Nest(start=0, counts=(3, 3), strides=((1,), (1,))), Nest(start=9, counts=(), strides=())]
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import sub
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


Stride = Union[int, tuple[int, ...]]
"""The step of a counted loop, or a list of offsets if the steps differ."""


class Nest(NamedTuple):
    """Consecutive positions from `start`, one for each combination of the counted loops. The last loop runs fastest."""

    start: int
    counts: tuple[int, ...]
    """Outermost first; empty for a single position."""
    strides: tuple[tuple[Any, ...], ...]
    """For each count, the stride of each sequence: a step; from `with_lists`, a Stride."""

    @property
    def size(self) -> int:
        return math.prod(self.counts)

    def strides_of(self, sequence: int) -> tuple[Stride, ...]:
        return tuple([by[sequence] for by in self.strides])


def nests(sequences: Ints, breaks: Any = None) -> list[Nest]:
    """Cut all positions into consecutive pieces.

    sequences: integers, shape (sequences, length). breaks: a mask of shape (length - 1,) of the positions after which
    a new piece must start.
    """
    import numpy as np

    length = sequences.shape[1]
    if length == 1:
        return [Nest(0, (), ())]
    steps = sequences[:, 1:] - sequences[:, :-1]  # np.diff takes twice as long, and most sequences are short
    changes = steps[:, 1:] != steps[:, :-1]
    if (breaks is None or not breaks.any()) and (whole := _whole(sequences, steps, changes)):
        return [whole]
    turns = np.ones(length, bool)
    """Position -> whether the step after it differs from the step before it."""
    turns[1:-1] = changes.any(axis=0)
    ends = np.ones(length, bool)
    """Position -> whether a piece must end there."""
    ends[:-1] = False if breaks is None else breaks
    turns |= ends
    turns[1:] |= ends[:-1]
    starts: list[int] = []
    turning = turns.nonzero()[0].tolist()
    must_end, must_turn = ends.tobytes(), turns.tobytes()
    start = 0
    while start < length:
        starts.append(start)
        # The run ends at the first turn after its start.
        stop = start if must_end[start] else turning[bisect_right(turning, start)]
        # A run of two may leave its second position to the run that follows: `a  b c d`, not `a b  c d`.
        if stop == start + 1 and not must_end[stop] and not must_turn[stop + 1]:
            stop = start
        start = stop + 1
    first = dict(zip(starts, sequences[:, starts].T.tolist()))
    step = steps[:, [*starts[:-1], min(starts[-1], length - 2)]].T.tolist()  # the last position has no step
    pieces = [
        Nest(start, (stop - start,), (tuple(by),)) if stop - start > 1 else Nest(start, (), ())
        for start, stop, by in zip(starts, [*starts[1:], length], step)
    ]
    return _merged(first, pieces, must_end)


def _whole(sequences: Ints, steps: Ints, changes: Any) -> Optional[Nest]:
    """The nest of all positions if it is a run, or equal runs at equal distances: a fast path for most sequences.

    steps: the differences of neighbours. changes: whether a step differs from the one before it.
    """
    length = sequences.shape[1]
    step = tuple(steps[:, 0].tolist())
    if not changes.any():
        return Nest(0, (length,), (step,))
    run = int(changes.any(axis=0).argmax()) + 2
    distances = sequences[:, run:] - sequences[:, :-run]
    if length % run or (distances != distances[:, :1]).any():
        return None
    return Nest(0, (length // run, run), (tuple(distances[:, 0].tolist()), step))


def _merged(first: dict[int, list[int]], pieces: list[Nest], must_end: bytes) -> list[Nest]:
    """Merge pieces with equal counts and strides at equal distances, until nothing changes.

    first: start of a piece -> the sequences' numbers there. must_end: position -> whether a piece must end there.
    """
    while True:
        outer: list[Nest] = []
        index = 0
        while index < len(pieces):
            piece = pieces[index]
            repeats = 1
            distance: tuple[int, ...] = ()
            while index + repeats < len(pieces) and not must_end[pieces[index + repeats].start - 1]:
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


def with_lists(pieces: Iterable[Nest], sequences: Sequence[Ints], *, flat: bool = False) -> list[Nest]:
    """The pieces with strides for these sequences, which may be irregular. Where steps differ, a stride lists offsets.

    A piece gets a single count if it must be flat, or if the offsets of its counts do not add up to a sequence:

    >>> with_lists([Nest(0, (3, 2), ())], [np.array([5, 6, 75, 76, 35, 36])])
    [Nest(start=0, counts=(3, 2), strides=(((0, 70, 30),), (1,)))]
    >>> with_lists([Nest(0, (3, 2), ())], [np.array([5, 6, 75, 74, 35, 36])])
    [Nest(start=0, counts=(6,), strides=(((0, 1, 70, 69, 30, 31),),))]
    """
    listed: list[Nest] = []
    for piece in pieces:
        counts = piece.counts
        runs = [sequence[piece.start : piece.start + piece.size] for sequence in sequences]
        of_sequences = [None if flat else _strides(run, counts) for run in runs]
        if None in of_sequences and counts:
            counts = (piece.size,)
            of_sequences = [_strides(run, counts) for run in runs]
        listed.append(Nest(piece.start, counts, tuple(zip(*of_sequences)) if counts else ()))
    return listed


def _strides(addresses: Ints, counts: tuple[int, ...]) -> Optional[list[Stride]]:
    """The strides of these counted loops whose offsets add up to the addresses; None if there are none.

    addresses: shape (product of counts,); the last count runs fastest.
    """
    cube = rest = (addresses - addresses[0]).reshape(counts)
    steps: list[Stride] = []
    for axis, count in enumerate(counts):
        line = cube[tuple(slice(None) if other == axis else 0 for other in range(len(counts)))]
        rest = rest - line.reshape([count if other == axis else 1 for other in range(len(counts))])
        steps.append(stride_of(line.tolist()))
    return None if rest.any() else steps


def stride_of(numbers: Sequence[int]) -> Stride:
    """One step, or the offsets from the first number if steps differ."""
    offsets = [number - numbers[0] for number in numbers]
    step = offsets[1] if len(offsets) > 1 else 0
    return step if all(offset == n * step for n, offset in enumerate(offsets)) else tuple(offsets)
