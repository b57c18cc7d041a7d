"""Groups -> Loops: where everything lies, and which loops reach it.

The compiler owns storage, and chooses it for the loops: parameters lie as the widest loop that reads them wants them,
term by term with the lanes inside; a gradient lies where its value does, in a mirror.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

from engines.rerolled.groups import Group, Phase
from engines.rerolled.loops import Access, Area, Copy, Loop, Loops, Operand, Segment, Table
from engines.rerolled.nest import Nest, nests
from engines.rerolled.sums import CONSTANT, INPUT, NONE, PARAMETER, SLOTS, Sums

if TYPE_CHECKING:
    from engines.rerolled.sums import Ints

VECTOR = 8
"""Blocks begin at multiples of it: doubles in the widest vector."""


def lay_out(found: Sums, groups: Sequence[Group]) -> Loops:
    """Places for all nodes, and the groups as loops over them."""
    return _Layout(found).lay_out(groups)


def padded(count: int) -> int:
    """How many doubles so many lanes take."""
    return count if count < 3 else 4 if count <= 4 else -(-count // VECTOR) * VECTOR


class _Layout:
    def __init__(self, found: Sums) -> None:
        import numpy as np

        self.np = np
        self.found = found
        self.place = np.full(found.nodes + 1, NONE, np.int64)  # the last one is NONE's
        self.end = 0
        self.areas: list[Area] = []
        self.numbers: list[float] = []

    def lay_out(self, groups: Sequence[Group]) -> Loops:
        found = self.found
        inputs = self.np.flatnonzero(found.kind == INPUT)
        self.place[inputs] = found.number[inputs]
        self.end = found.inputs
        self._close("x")
        self._place_constants()
        self._close("k")
        self._place_parameters(groups)
        parameters = self._close("p")
        loops = [loop for group in groups if group.phase == Phase.FORWARD for loop in self._loops(group)]
        values = self._close("v")
        self.mirror = values.stop - parameters.start
        """From a parameter or a value to its gradient."""
        self.taken = self.np.zeros(values.stop + VECTOR, bool)
        self.taken[self.place[self.place >= 0]] = True
        self.end += parameters.stop - parameters.start
        self._close("q")
        self.end += values.stop - values.start
        self._close("g")
        loops += [loop for group in groups if group.phase != Phase.FORWARD for loop in self._loops(group)]
        self.end += VECTOR  # the last vector may reach beyond the last block
        self._close("u")
        return Loops(
            loops,
            tuple(self.areas),
            tuple(self.numbers),
            list(self._copies()),
            self._leaf(found.loss),
            tuple(map(self._leaf, found.outputs)),
            found.inputs,
            found.parameters,
        )

    def _close(self, name: str) -> Area:
        """End an area, at a multiple of VECTOR."""
        self.end = -(-self.end // VECTOR) * VECTOR
        self.areas.append(Area(name, self.areas[-1].stop if self.areas else 0, self.end))
        return self.areas[-1]

    def _block(self, size: int) -> int:
        if size > 2:
            self.end = -(-self.end // VECTOR) * VECTOR
        start, self.end = self.end, self.end + size
        return start

    def _leaf(self, node: int) -> Operand:
        return self._number(Access(int(self.place[node]), ()))

    def _number(self, access: Access) -> Operand:
        """A constant that is the same everywhere is a number."""
        index = access.base - self.areas[1].start
        if not 0 <= index < len(self.numbers) or any(access.lanes) or any(access.terms):
            return access
        return self.numbers[index]

    # --- leaves ----------------------------------------------------------------------------------------------------

    def _place_constants(self) -> None:
        """Equal ones lie at one place."""
        np, found = self.np, self.found
        constants = np.flatnonzero(found.kind == CONSTANT)
        bits, inverse = np.unique(found.number[constants].view(np.int64), return_inverse=True)
        self.numbers = bits.view(np.float64).tolist()
        self.place[constants] = self._block(len(bits)) + inverse.reshape(-1)

    def _place_parameters(self, groups: Sequence[Group]) -> None:
        """As the loop with the most lanes that reads them takes them: term by term, the lanes inside and padded."""
        np, found = self.np, self.found
        is_parameter = np.append(found.kind == PARAMETER, False)
        for group in sorted(groups, key=lambda group: -len(group.nodes)):
            if group.phase == Phase.FORWARD:
                terms = group.first + np.arange(group.terms)[:, None]
                for slot in range(len(SLOTS)):
                    nodes = found.slots[terms, slot]
                    fresh = is_parameter[nodes] & (self.place[nodes] < 0)
                    if fresh.any():
                        self._place_fresh(nodes, fresh)
        unread = np.flatnonzero(is_parameter & (self.place < 0))
        self.place[unread] = self._block(len(unread)) + np.arange(len(unread))

    def _place_fresh(self, nodes: Ints, fresh: Any) -> None:
        """nodes: shape (terms, lanes); fresh: which of them have no place yet."""
        np = self.np
        at = np.flatnonzero(fresh)
        _, first = np.unique(nodes.reshape(-1)[at], return_index=True)
        at = np.sort(at[first])
        term = at // nodes.shape[1]
        count = np.bincount(term, minlength=len(nodes))
        lanes = int(count.max())
        rank = np.arange(len(at))
        if (count[count > 0] == lanes).all():
            width = padded(lanes)
            place = self._block(width * (len(at) // lanes)) + rank // lanes * width + rank % lanes
        else:
            place = self._block(len(at)) + rank
        self.place[nodes.reshape(-1)[at]] = place

    def _copies(self) -> Iterator[Copy]:
        np, found = self.np, self.found
        parameters = np.flatnonzero(found.kind == PARAMETER)
        parameters = parameters[np.argsort(self.place[parameters])]
        pairs = np.stack([self.place[parameters], found.number[parameters].astype(np.int64)])
        for nest in nests(pairs) if len(parameters) else ():
            place, index = (
                Access(int(first), tuple(strides[row] for strides in nest.strides))
                for row, first in enumerate(pairs[:, nest.start])
            )
            yield Copy(nest.counts, place, index)

    # --- loops -----------------------------------------------------------------------------------------------------

    def _loops(self, group: Group) -> Iterator[Loop]:
        np, found = self.np, self.found
        order, targets = self._targets(group)
        terms = group.first[order] + np.arange(group.terms)[:, None]
        slots = np.moveaxis(found.slots[terms], -1, 0)
        places = np.where(slots == NONE, 0, self.place[slots])  # (slots, terms, lanes)
        template = found.template[terms[:, 0]]
        area = np.searchsorted([area.stop for area in self.areas], places[:, :, 0], side="right")
        changes = (template[1:] != template[:-1]) | (area[:, 1:] != area[:, :-1]).any(axis=0)
        stretches, tabled = _over_terms(places, changes)

        # Where each stretch's operands begin, lane by lane; at the end, the targets.
        sequences = np.concatenate([places[:, nest.start] for nest in stretches])
        irregular = np.tile(tabled, len(stretches))
        if targets is not None:
            sequences, irregular = np.vstack([sequences, targets]), np.append(irregular, False)
        pieces, irregular = _over_lanes(sequences, irregular, targets is not None)

        for piece in pieces:
            members = slice(piece.start, piece.start + piece.size)
            target, room = self._target(group.nodes[order][members], piece, None if targets is None else targets[members])
            segments = []
            for index, nest in enumerate(stretches):
                operands: list[Operand] = []
                for slot in np.flatnonzero(slots[:, nest.start, 0] != NONE).tolist():
                    row = index * len(SLOTS) + slot
                    if irregular[row] and (piece.counts or nest.counts):
                        operands.append(Table(places[slot, nest.start : nest.start + nest.size, members].T))
                    else:
                        first = int(places[slot, nest.start, piece.start])
                        lanes = tuple(strides[row] for strides in piece.strides)
                        operands.append(self._number(Access(first, lanes, tuple(s[slot] for s in nest.strides))))
                segments.append(Segment(found.templates[template[nest.start]], nest.counts, tuple(operands)))
            yield Loop(group.phase, piece.counts, target, room, tuple(segments))

    def _targets(self, group: Group) -> tuple[Ints, Optional[Ints]]:
        """The order of the lanes; and where their sums go, where that is given: beside their values."""
        np = self.np
        mirrored = self.found.mirrors[group.nodes]
        if group.phase == Phase.FORWARD or mirrored[0] == NONE:
            return np.arange(len(group.nodes)), None
        if (self.place[mirrored] < 0).any():
            return np.argsort(mirrored), None
        targets = self.place[mirrored] + self.mirror
        order = np.argsort(targets)
        return order, targets[order]

    def _target(self, nodes: Ints, piece: Nest, targets: Optional[Ints]) -> tuple[Access, int]:
        """Where a piece's sums go, and how many inner lanes have room there."""
        np = self.np
        inner = piece.counts[-1] if piece.counts else 1
        width = padded(inner)
        if targets is None:
            start = self._block(width * (len(nodes) // inner))
            lane = np.arange(len(nodes))
            self.place[nodes] = start + lane // inner * width + lane % inner
            sizes = (*piece.counts[1:-1], width)
            outer = tuple(math.prod(sizes[index:]) for index in range(len(piece.counts) - 1))
            return Access(start, (*outer, 1)[: len(piece.counts)]), width
        self.place[nodes] = targets
        target = Access(int(targets[0]), tuple(strides[-1] for strides in piece.strides))
        if target.lanes[-1:] != (1,):
            return target, inner
        beyond = targets.reshape(-1, inner)[:, -1:] - self.mirror + np.arange(1, width - inner + 1)
        return target, inner if self.taken[beyond].any() else width


def _over_terms(places: Ints, changes: Any) -> tuple[list[Nest], Any]:
    """Stretches of terms that every lane takes in the same strides; and which slots need tables instead.

    places: shape (slots, terms, lanes). changes: after which terms the template or an area is another.
    """
    import numpy as np

    steps = np.diff(places, axis=1)
    # Any two terms look affine: what counts is that all lanes take the same step.
    uneven = (steps != steps[:, :, :1]).any(axis=2)
    tabled = (uneven & ~changes).sum(axis=1) > max(4, int((~changes).sum()) // 4)
    stretches = _stretches(places, tabled, uneven, changes)
    if _too_many(len(stretches) - int(changes.sum()), places.shape[1]):
        tabled |= [_too_many(len(nests(row[None, :, 0])), places.shape[1]) for row in places]
        stretches = _stretches(places, tabled, uneven, changes)
    return stretches, tabled


def _stretches(places: Ints, tabled: Any, uneven: Any, changes: Any) -> list[Nest]:
    import numpy as np

    return nests(np.where(tabled[:, None], 0, places[:, :, 0]), changes | (uneven & ~tabled[:, None]).any(axis=0))


def _over_lanes(sequences: Ints, irregular: Any, targeted: bool) -> tuple[list[Nest], Any]:
    """Pieces of lanes over which every operand is affine; and which operands need tables instead.

    targeted: the last sequence is the targets', and can't have a table.
    """
    import numpy as np

    sequences = np.where(irregular[:, None], 0, sequences)
    pieces = nests(sequences)
    if _too_many(len(pieces), sequences.shape[1]):
        irregular = irregular | [_too_many(len(nests(row[None])), len(row)) for row in sequences]
        irregular[-1] &= not targeted
        pieces = nests(np.where(irregular[:, None], 0, sequences))
    return pieces, irregular


def _too_many(pieces: int, length: int) -> bool:
    """Whether so many pieces are no recovered loops any more."""
    return pieces > max(4, length // 8)
