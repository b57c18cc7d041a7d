"""The lanes of a group as pieces that a loop can run: nests of terms, and nests of lanes.

All functions here are pure: places in, nests out. `layout` writes the nests as loops.

- A *segment* is a run of terms with one template, whose operands stay in their areas.
- A *part* is a set of lanes that take the same steps from term to term, so that one nest of terms serves all of them.
- A *piece* is a nest of consecutive lanes of a part. Each piece becomes a loop.
- Pieces are *rows of different lengths* if they differ only in their inner count. Attention has such rows.

Example: three lanes of two terms at places 16 20, 17 21 and 40 47. The last lane steps by 7 and the others by 4. They
differ at one term only, so a segment ends there, and all lanes are one part. Lanes 0 and 1 are a piece, with stride 1
in both segments. Lane 2 is another piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from zoomgrad.engines.rerolled.recover.nest import Nest, nests, with_lists
from zoomgrad.engines.rerolled.recover.places import WRITTEN_SINGLY
from zoomgrad.engines.rerolled.recover.sums import Ints, distinct


class Lanes(NamedTuple):
    """Lanes of a group, and the places of their operands."""

    nodes: Ints
    """Lane -> node."""
    targets: Optional[Ints]
    """Lane -> the place of its sum, if that is known."""
    row: Optional[Ints]
    """Lane -> the block and row of an operand of its first term, if they are known."""
    template: Ints
    """Term -> the number of its template."""
    places: Ints
    """Places of operands; shape (slots, terms, lanes)."""

    def part(self, members: Any) -> Lanes:
        targets, row = (None if column is None else column[members] for column in (self.targets, self.row))
        return Lanes(self.nodes[members], targets, row, self.template, self.places[:, :, members])


def parts(lanes: Lanes, stops: Ints) -> tuple[list[Lanes], Ints]:
    """Split lanes into parts. Return a mask of the terms after which a segment ends, too.

    A segment ends where the next term has another template or operand area. stops: the ends of the areas.
    """
    area = stops.searchsorted(lanes.places[:, :, 0], side="right")
    ends = (lanes.template[1:] != lanes.template[:-1]) | (area[:, 1:] != area[:, :-1]).any(axis=0)
    steps = lanes.places[:, 1:] - lanes.places[:, :-1]
    uneven = (steps != steps[:, :, :1]).any(axis=(0, 2)) & ~ends
    if not uneven.any():
        return [lanes], ends
    pattern = distinct(*steps[:, ~ends].reshape(-1, len(lanes.nodes)))[1]
    patterns = pattern.max() + 1
    # Gradients of queries and of keys are sums over the same scores, by row and by column: two loops.
    are_two_loops = lanes.row is not None and patterns == 2
    # A segment also ends at a term where lanes differ in their steps, if that is rare or gives less code than parts.
    if not are_two_loops and uneven.sum() <= max(patterns, WRITTEN_SINGLY):
        return [lanes], ends | uneven
    return [lanes.part(np.flatnonzero(pattern == label)) for label in dict.fromkeys(pattern.tolist())], ends


def nests_of_terms(lanes: Lanes, ends: Any) -> list[Nest]:
    """Nests of the terms of lanes with equal steps. ends: the terms after which a nest must end."""
    places = lanes.places[:, :, 0]
    most = int(ends.sum()) + WRITTEN_SINGLY
    pieces = nests(places, ends)
    if len(pieces) <= most:
        return pieces
    regular = [sequence for sequence in places if len(nests(sequence[None], ends)) <= most]
    return with_lists(nests(np.array(regular or [0 * places[0]]), ends), list(places), flat=True)


def nests_of_lanes(lanes: Lanes, sequences: Sequence[Ints]) -> tuple[list[Nest], int]:
    """Nests of lanes; and if they have rows of different lengths, the longest length, else 0.

    Nests have strides for the targets, if those are known, and for each of `sequences`: of an operand, lane -> place.
    """
    targets = [] if lanes.targets is None else [lanes.targets]
    every = [*targets, *sequences] or [0 * lanes.nodes]
    if lanes.row is not None:
        # A change of block or row ends a nest, also where addresses go on as they did.
        pieces, longest = _as_rows(nests(np.array([lanes.row, *every])), 2)
        if longest:
            return [piece._replace(strides=tuple(by[1:] for by in piece.strides)) for piece in pieces], longest
    pieces = nests(np.array(every))
    # Lists for pieces of many sizes, as attention over earlier positions has, would be as long as all pieces.
    are_ragged = len({piece.counts for piece in pieces}) > WRITTEN_SINGLY and len(pieces) <= len(lanes.nodes) // 8
    if are_ragged or len(pieces) <= WRITTEN_SINGLY:
        return _as_rows(pieces, 3)
    regular = [sequence for sequence in sequences if len(nests(sequence[None])) <= WRITTEN_SINGLY]
    return with_lists(nests(np.array([*targets, *regular] or [0 * lanes.nodes])), every), 0


def _as_rows(pieces: list[Nest], fewest: int) -> tuple[list[Nest], int]:
    """If these are pieces with rows of different lengths, write all of them as rows. Return the longest length, else 0.

    Attention has them: with four heads, 4 rows of 2 scores for the second position, 4 rows of 3 for the third, and so
    on. Where one row follows another without a gap, `nests` finds one long row. fewest: the least number of pieces.
    """
    if len(pieces) < fewest:
        return pieces, 0
    rows = max((piece.counts[0] for piece in pieces if len(piece.counts) == 2), default=1)
    no_step = next(((0,) * len(by) for piece in pieces for by in piece.strides), ())
    cut: list[Nest] = []
    for piece in pieces:
        counts, steps = piece.counts or (1,), piece.strides or (no_step,)
        if len(counts) == 1 and rows > 1 and counts[0] % rows == 0:
            inner = counts[0] // rows
            counts = (rows, inner)
            # A count of 1 has no step.
            steps = tuple(tuple(step * by for step in run) for run in steps for by in (inner, int(inner > 1)))
        if len(counts) != 1 + (rows > 1) or (rows > 1 and counts[0] != rows):
            return pieces, 0
        cut.append(Nest(piece.start, counts, steps))
    lengths = {piece.counts[-1] for piece in cut}
    return (cut, max(lengths)) if len(lengths) == len(pieces) else (pieces, 0)
