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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.recover.nest import Nest, nests, strides
from zoomgrad.engines.rerolled.recover.places import WRITTEN_SINGLY
from zoomgrad.engines.rerolled.recover.sums import distinct

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


@dataclass
class Lanes:
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

    @property
    def steps(self) -> Ints:
        """The distance to the next term; shape (slots, terms - 1, lanes)."""
        return self.places[:, 1:] - self.places[:, :-1]

    @cached_property
    def differ(self) -> Any:
        """Whether lanes differ in their steps to the next term; shape (slots, terms - 1). None if they do not."""
        if self.places.shape[1] == 1 or self.places.shape[2] == 1:
            return None
        differ = (self.steps != self.steps[:, :, :1]).any(axis=2)
        return differ if differ.any() else None

    def patterns(self, terms: Any) -> Ints:
        """Lane -> a number for its steps from these terms to the next ones."""
        return distinct(*self.steps[:, terms].reshape(-1, len(self.nodes)))[1]

    def part(self, members: Any) -> Lanes:
        """Some of the lanes."""
        targets, row = (None if column is None else column[members] for column in (self.targets, self.row))
        return Lanes(self.nodes[members], targets, row, self.template, self.places[:, :, members])


class Terms(NamedTuple):
    """The terms of some lanes."""

    nests: list[Nest]
    uneven: list[bool]
    """Slot -> whether lanes differ in their steps within nests."""
    regular: list[bool]
    """Slot -> whether the nests have its strides. They ignore uneven slots, and irregular ones."""


def segment_ends(lanes: Lanes, stops: Ints) -> Any:
    """A mask of the terms after which a segment ends, because the next one has another template or operand area.

    stops: the ends of the areas.
    """
    import numpy as np

    if len(lanes.template) == 1:
        return np.zeros(0, bool)
    area = stops.searchsorted(lanes.places[:, :, 0], side="right")
    changes = (lanes.template[1:] != lanes.template[:-1]) | (area[:, 1:] != area[:, :-1]).any(axis=0)
    if lanes.differ is None:
        return changes
    uneven = lanes.differ.any(axis=0) & ~changes
    # A segment also ends at a term where lanes differ in their steps, if that is rare among regular terms.
    if not uneven.any() or uneven.sum() > WRITTEN_SINGLY:
        return changes
    # Gradients of queries and of keys are sums over the same scores, by row and by column: two loops.
    if lanes.row is not None and lanes.patterns(~changes).max() == 1:
        return changes
    return changes | uneven


def with_equal_steps(lanes: Lanes, ends: Any) -> Iterator[Lanes]:
    """Split lanes into parts that take the same steps within segments, unless that gives too many parts.

    The places of any two terms are affine. Lanes make a loop only if they all step the same way.
    """
    import numpy as np

    if lanes.differ is None or not (lanes.differ & ~ends).any():
        yield lanes
        return
    pattern = lanes.patterns(~ends)
    if _is_irregular(int(pattern.max()) + 1, len(lanes.nodes)):
        yield lanes
        return
    for label in dict.fromkeys(pattern.tolist()):
        yield lanes.part(np.flatnonzero(pattern == label))


def nests_of_terms(lanes: Lanes, ends: Any) -> Terms:
    """Nests of terms. ends: the terms after which a nest must end."""
    import numpy as np

    first = lanes.places[:, :, 0]
    if first.shape[1] == 1:
        return Terms([Nest(0, (), ())], [False] * len(first), [True] * len(first))
    breaks = int(ends.sum())
    must_end = ends if breaks else None
    if lanes.differ is None:
        uneven = np.zeros(len(first), bool)
    else:
        uneven = (lanes.differ & ~ends).any(axis=1)
        first = np.where(uneven[:, None], 0, first)
    ignored = uneven
    pieces = nests(first, must_end)
    if len(pieces) > breaks + WRITTEN_SINGLY:
        ignored = uneven | [len(nests(row[None], must_end)) > breaks + WRITTEN_SINGLY for row in first]
        pieces = nests(np.where(ignored[:, None], 0, first), must_end)
    return Terms(pieces, uneven.tolist(), (~ignored).tolist())


def nests_of_lanes(lanes: Lanes, sequences: Sequence[Ints]) -> tuple[list[Nest], int]:
    """Nests of lanes; and if they have rows of different lengths, the longest length, else 0.

    Nests have strides for the targets, if those are known, and for each sequence; or none.

    sequences: for each operand, lane -> place.
    """
    targets = [] if lanes.targets is None else [lanes.targets]
    if lanes.row is not None:
        # A change of block or row ends a nest, also where addresses go on as they did.
        pieces, longest = _as_rows(nests(_stacked([lanes.row, *targets, *sequences])), 2)
        if longest:
            return [piece._replace(strides=tuple(by[1:] for by in piece.strides)) for piece in pieces], longest
    return _as_rows(_few_nests(targets, sequences, len(lanes.nodes)), 3)


def _few_nests(targets: Sequence[Ints], sequences: Sequence[Ints], count: int) -> list[Nest]:
    """Nests of lanes for all operands. If this takes many nests, lists or tables handle the irregular operands."""
    import numpy as np

    if not targets and not sequences:
        sequences = [np.zeros(count, np.int64)]
    pieces = nests(_stacked([*targets, *sequences]))
    if len(pieces) <= WRITTEN_SINGLY:
        return pieces
    regular = [sequence for sequence in sequences if len(nests(sequence[None])) <= WRITTEN_SINGLY]
    fewer = nests(np.stack([*targets, *regular] or [np.zeros(count, np.int64)]))
    separable = all(
        strides(sequence[piece.start : piece.start + piece.size], piece.counts) is not None
        for sequence in sequences
        for piece in fewer
    )
    # A list for pieces of many sizes, as attention over earlier positions has, would be as long as all pieces.
    is_ragged = len({piece.counts for piece in pieces}) > WRITTEN_SINGLY
    if (separable and not is_ragged) or _is_irregular(len(pieces), count):
        return [piece._replace(strides=()) for piece in fewer]  # these strides cover only some operands
    return pieces


def _stacked(sequences: Sequence[Ints]) -> Ints:
    """`np.stack`, which takes three times as long for short sequences."""
    import numpy as np

    return np.concatenate(sequences).reshape(len(sequences), -1)


def _as_rows(pieces: list[Nest], fewest: int) -> tuple[list[Nest], int]:
    """If these are pieces with rows of different lengths, write all of them as rows. Return the longest length, else 0.

    Attention has them: with four heads, 4 rows of 2 scores for the second position, 4 rows of 3 for the third, and so
    on. Where one row follows another without a gap, `nests` finds one long row.

    fewest: the least number of pieces.
    """
    if len(pieces) < fewest:
        return pieces, 0
    rows = max((piece.counts[0] for piece in pieces if len(piece.counts) == 2), default=1)
    cut: list[Nest] = []
    for piece in pieces:
        counts, steps = piece.counts or (1,), piece.strides
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


def _is_irregular(pieces: int, length: int) -> bool:
    """Whether there are too many pieces for this length to count as loops."""
    return pieces > max(WRITTEN_SINGLY, length // 8)
