"""Groups -> Loops: where everything lies, and which loops reach it.

The compiler owns storage, and chooses it for the loops: parameters lie as the widest loop that reads them wants them,
term by term with the lanes inside; a gradient lies where its value does, in a mirror.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from engines.rerolled.recover.groups import Group, Phase
from engines.rerolled.recover.loops import Access, Area, Copy, Loop, Loops, Operand, Segment, Table
from engines.rerolled.recover.nest import Nest, nests, strides
from engines.rerolled.recover.sums import CONSTANT, INPUT, NONE, PARAMETER, SLOTS, Sums

if TYPE_CHECKING:
    from engines.rerolled.recover.sums import Ints

FEW = 4
"""So many single sums, pieces or terms are no reason for anything cleverer."""
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
        """Node -> where it lies."""
        self.end = 0
        """Where the next block goes."""
        self.areas: dict[str, Area] = {}
        """Those that are complete, by name, in the order of the workspace."""
        self.numbers: list[float] = []
        self.mirror = NONE
        """From a parameter or a value to its gradient."""
        self.taken = np.zeros(0, bool)
        """Place -> whether a leaf or a value is there."""

    def lay_out(self, groups: Sequence[Group]) -> Loops:
        np, found = self.np, self.found
        inputs = np.flatnonzero(found.kind == INPUT)
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
        self.taken = np.zeros(values.stop + VECTOR, bool)
        self.taken[self.place[self.place >= 0]] = True
        self.end += parameters.stop - parameters.start
        self._close("q")
        self.end += values.stop - values.start
        self._close("g")
        loops += [loop for group in groups if group.phase != Phase.FORWARD for loop in self._loops(group)]
        self.end += VECTOR  # the last vector may reach beyond the last block
        self._close("u")
        return Loops(
            loops=loops,
            areas=tuple(self.areas.values()),
            numbers=tuple(self.numbers),
            copies=list(self._copies()),
            loss=self._leaf(found.loss),
            outputs=tuple(map(self._leaf, found.outputs)),
            inputs=found.inputs,
            parameters=found.parameters,
        )

    def _close(self, name: str) -> Area:
        """The area from the end of the last one to here, rounded up to a multiple of VECTOR."""
        start = max((area.stop for area in self.areas.values()), default=0)
        self.end = -(-self.end // VECTOR) * VECTOR
        self.areas[name] = Area(name, start, self.end)
        return self.areas[name]

    def _block(self, size: int) -> int:
        if size > 2:
            self.end = -(-self.end // VECTOR) * VECTOR
        start, self.end = self.end, self.end + size
        return start

    def _leaf(self, node: int) -> Operand:
        return self._number(Access(int(self.place[node]), ()))

    def _number(self, access: Access) -> Operand:
        """A constant that is the same everywhere is a number."""
        index = access.base - self.areas["k"].start
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
        places, indices = self.place[parameters], found.number[parameters].astype(np.int64)
        pieces = nests(np.stack([places, indices])) if len(parameters) else []
        if len(pieces) > 2 * FEW:  # the caller's order is not the loops'
            pieces = nests(places[None])
        for piece in pieces:
            members = slice(piece.start, piece.start + piece.size)
            counts = piece.counts
            if strides(indices[members], counts) is None:
                counts = (piece.size,)
            place, parameter = (
                Access(int(column[piece.start]), strides(column[members], counts) or ()) for column in (places, indices)
            )
            yield Copy(counts, place, parameter)

    # --- loops -----------------------------------------------------------------------------------------------------

    def _loops(self, group: Group) -> Iterator[Loop]:
        if len(group.nodes) == 1 and group.terms <= FEW:
            yield self._single(group)
            return
        np, found = self.np, self.found
        order, targets = self._targets(group)
        terms = group.first[order] + np.arange(group.terms)[:, None]
        slots = np.moveaxis(found.slots[terms], -1, 0)
        lanes = _Lanes(
            nodes=group.nodes[order],
            targets=targets,
            template=found.template[terms[:, 0]],
            used=slots[:, :, 0] != NONE,
            places=np.where(slots == NONE, 0, self.place[slots]),
        )
        area = np.searchsorted([area.stop for area in self.areas.values()], lanes.places[:, :, 0], side="right")
        changes = (np.diff(lanes.template) != 0) | np.diff(area, axis=1).any(axis=0)
        steps = np.diff(lanes.places, axis=1)
        uneven = (steps != steps[:, :, :1]).any(axis=(0, 2)) & ~changes
        if uneven.sum() <= FEW:
            changes |= uneven
        for even in lanes.evenly(changes):
            yield from self._of_lanes(group.phase, even, changes)

    def _of_lanes(self, phase: Phase, lanes: _Lanes, changes: Any) -> Iterator[Loop]:
        """Loops over lanes, most often one. changes: after which terms the template or an area is another."""
        np = self.np
        places, template = lanes.places, lanes.template
        stretches, uneven = _stretches(places, changes)
        rows = [(nest.start, slot) for nest in stretches for slot in np.flatnonzero(lanes.used[:, nest.start]).tolist()]
        sequences = [places[slot, start] for start, slot in rows if not uneven[slot]]
        pieces = _pieces(lanes.targets, sequences, len(lanes.nodes))
        for piece in pieces:
            members = slice(piece.start, piece.start + piece.size)
            target, room = self._target(lanes.nodes[members], piece.counts, lanes.given(members))
            segments = []
            for nest in stretches:
                run = slice(nest.start, nest.start + nest.size)
                operands = tuple(
                    self._operand(places[slot, run, members], piece.counts, nest.counts)
                    for slot in np.flatnonzero(lanes.used[:, nest.start]).tolist()
                )
                segments.append(Segment(self.found.templates[template[nest.start]], nest.counts, operands))
            yield Loop(phase, piece.counts, target, room, tuple(segments))

    def _operand(self, places: Ints, lanes: tuple[int, ...], terms: tuple[int, ...]) -> Operand:
        """places: shape (terms, lanes), both flattened."""
        even = (places - places[:1] == (places[:, 0] - places[0, 0])[:, None]).all()
        of_lanes, of_terms = (strides(places[0], lanes), strides(places[:, 0], terms)) if even else (None, None)
        if of_lanes is None or of_terms is None:
            return Table(places.T)
        return self._number(Access(int(places[0, 0]), of_lanes, of_terms))

    def _single(self, group: Group) -> Loop:
        """One sum of a few terms, without the machinery: half of the groups of a network are such."""
        found = self.found
        node, first = int(group.nodes[0]), int(group.first[0])
        mirrored = NONE if group.phase == Phase.FORWARD else int(self.place[found.mirrors[node]])
        self.place[node] = self._block(1) if mirrored == NONE else mirrored + self.mirror
        terms = range(first, first + group.terms)
        segments = [
            Segment(
                found.templates[found.template[term]],
                (),
                tuple(self._leaf(slot) for slot in found.slots[term].tolist() if slot != NONE),
            )
            for term in terms
        ]
        return Loop(group.phase, (), Access(int(self.place[node]), ()), 1, tuple(segments))

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

    def _target(self, nodes: Ints, counts: tuple[int, ...], targets: Optional[Ints]) -> tuple[Access, int]:
        """Where sums go, and how many inner lanes have room there."""
        np = self.np
        inner = counts[-1] if counts else 1
        width = padded(inner)
        is_given = targets is not None
        if targets is None:
            start = self._block(width * (len(nodes) // inner))
            lane = np.arange(len(nodes))
            targets = start + lane // inner * width + lane % inner
        self.place[nodes] = targets
        steps = strides(targets, counts)
        assert steps is not None
        target = Access(int(targets[0]), steps)
        if not is_given or steps[-1:] != (1,):
            return target, inner if is_given else width
        beyond = targets.reshape(-1, inner)[:, -1:] - self.mirror + np.arange(1, width - inner + 1)
        return target, inner if self.taken[beyond].any() else width


class _Lanes(NamedTuple):
    """Lanes of a group, in their order."""

    nodes: Ints
    targets: Optional[Ints]
    """Where their sums go, if that is given."""
    template: Ints
    """Of each term."""
    used: Any
    """Shape (slots, terms)."""
    places: Ints
    """Of operands; shape (slots, terms, lanes)."""

    def given(self, members: Any) -> Optional[Ints]:
        return None if self.targets is None else self.targets[members]

    def evenly(self, changes: Any) -> Iterator[_Lanes]:
        """Parts whose lanes take the same steps from term to term: one, where all do.

        Any two terms look affine; what makes a loop is that all lanes go on alike.
        """
        import numpy as np

        steps = np.diff(self.places, axis=1)[:, ~changes]
        if (steps == steps[:, :, :1]).all():
            yield self
            return
        _, labels = np.unique(steps.reshape(-1, len(self.nodes)), axis=1, return_inverse=True)
        pattern: Any = labels.reshape(-1)
        if _too_many(int(pattern.max()) + 1, len(self.nodes)):
            yield self
            return
        for label in dict.fromkeys(pattern.tolist()):
            members = np.flatnonzero(pattern == label)
            yield self._replace(
                nodes=self.nodes[members], targets=self.given(members), places=self.places[:, :, members]
            )


def _stretches(places: Ints, changes: Any) -> tuple[list[Nest], Any]:
    """Nests of terms; and which slots are left out of account, since lanes do not go on alike there.

    places: shape (slots, terms, lanes).
    """
    import numpy as np

    steps = np.diff(places, axis=1)
    differ = (steps != steps[:, :, :1]).any(axis=2)
    uneven = (differ & ~changes).any(axis=1)
    first = np.where(uneven[:, None], 0, places[:, :, 0])
    breaks = int(changes.sum())
    stretches = nests(first, changes)
    if len(stretches) > breaks + FEW:
        bumpy = np.array([len(nests(row[None], changes)) > breaks + FEW for row in first])
        stretches = nests(np.where(bumpy[:, None], 0, first), changes)
    return stretches, uneven


def _pieces(targets: Optional[Ints], sequences: Sequence[Ints], count: int) -> list[Nest]:
    """Nests of lanes that serve all operands; some may need tables."""
    import numpy as np

    given = [] if targets is None else [targets]
    if not given and not sequences:
        sequences = [np.zeros(count, np.int64)]
    pieces = nests(np.stack([*given, *sequences]))
    if len(pieces) <= FEW:
        return pieces
    smooth = [sequence for sequence in sequences if len(nests(sequence[None])) <= FEW]
    fewer = nests(np.stack([*given, *smooth] or [np.zeros(count, np.int64)]))
    apart = all(
        strides(sequence[piece.start : piece.start + piece.size], piece.counts) is not None
        for sequence in sequences
        for piece in fewer
    )
    return fewer if apart or _too_many(len(pieces), count) else pieces


def _too_many(pieces: int, length: int) -> bool:
    """Whether so many pieces are no recovered loops any more."""
    return pieces > max(FEW, length // 8)
