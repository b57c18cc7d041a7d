"""Groups -> Loops: choose a place for every node, and write the groups as loops over these places.

All nodes have places in one workspace of doubles, which is divided into areas:

- `x`: inputs, in the caller's order.
- `k`: constants. Equal ones share a place.
- `p`: parameters, in the order of the widest forward loop that reads them: term by term, the lanes of a term side by
  side. For a layer this is the transposed weight matrix.
- `v`: values, loop by loop, with lanes side by side.
- `q` and `g`: the gradients of parameters and of values, each at a fixed distance from its parameter or value.
- `u`: the other sums of the backward pass: coefficients, and gradients of values that have no place.

Lanes side by side are padded to whole vectors: 3 lanes to 4, and 50 to 56.

A group becomes one loop under two conditions: its lanes take the same steps from term to term, so that one nest of
terms serves all lanes, and the places of its first terms form one nest of lanes. If lanes differ in at most FEW steps,
a new segment starts at each of these terms. If they differ in more, lanes with equal steps become separate loops. If
that gives too many loops, a table lists the places of an operand.

Example, continued from `groups`. The sums of the group %8, %16 are

    p0 + p1 * x0 + p2 * x1
    p3 + p4 * x0 + p5 * x1

It is the only forward group that reads parameters. Their order is p0 p3, p1 p4, p2 p5, starting at place 16. A copy
maps these places to the caller's parameters:

    >>> loops = lay_out(fuse(chain(pull(tape))), group(fuse(chain(pull(tape)))))
    >>> for area in loops.areas:
    ...     print(*area)
    x 0 8
    k 8 16
    p 16 24
    v 24 32
    q 32 40
    g 40 48
    u 48 56
    >>> [copy] = loops.copies
    >>> copy.counts, copy.place, copy.parameter
    ((3, 2), Access(base=16, lanes=(2, 1), terms=()), Access(base=0, lanes=(1, 3), terms=()))

From the second term to the third, both lanes step by 2 in `p` and by 1 in `x`. The first term has another template, so
it is a separate segment:

    >>> first, second = loops.loops[0].segments
    >>> first.counts, first.operands
    ((), (Access(base=16, lanes=(1,), terms=()),))
    >>> second.counts, second.operands
    ((2,), (Access(base=18, lanes=(1,), terms=(2,)), Access(base=0, lanes=(0,), terms=(1,))))

In the text form, with places counted from the start of their area, this is

    for i<2: v[i] = p[i] + sum(t<2: p[2 + i + 2*t] * x[t])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from zoomgrad.engines.rerolled.recover.groups import Group, Phase
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Area, Copy, Loop, Loops, Operand, Segment, Table
from zoomgrad.engines.rerolled.recover.nest import Nest, Stride, nests, strides
from zoomgrad.engines.rerolled.recover.sums import (
    CONSTANT,
    GRADIENT,
    INPUT,
    NONE,
    PARAMETER,
    SLOTS,
    Sums,
    columns,
    distinct,
    leaves,
)

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints

FEW = 4
"""Up to this many terms of a single sum, pieces or irregular terms are emitted one by one."""
_OFFSET = 1 << 32
"""More than the rows of a block. It separates blocks."""


def lay_out(found: Sums, groups: Sequence[Group]) -> Loops:
    """Give every node a place in one workspace, and write the groups as loops over it."""
    return _Layout(found).lay_out(groups)


def padded(count: int) -> int:
    """The number of places for this many lanes side by side, including padding.

    Blocks of more than 2 numbers start at multiples of VECTOR.
    """
    return count if count < 3 else 4 if count <= 4 else -(-count // VECTOR) * VECTOR


class _Layout:
    """Fills the workspace from start to end, area by area, and each area block by block."""

    def __init__(self, found: Sums) -> None:
        import numpy as np

        self.np = np
        self.found = found
        self.place = np.full(found.nodes + 1, NONE, np.int32)  # the last entry is for NONE
        """Node -> its place."""
        self.end = 0
        """The place of the next block."""
        self.areas: dict[str, Area] = {}
        """Complete areas by name, in the order of the workspace."""
        self.numbers: list[float] = []
        self.row = np.zeros(found.nodes + 1, np.int64)
        """Node -> its block and row, if the loop that computes it is one of several with rows of different lengths."""
        self.blocks = 0
        """The number of such loops so far."""
        self.planned = np.full(found.nodes + 1, NONE, np.int32)
        """Value -> its place, if that is known before its loop is laid out."""
        self.mirror = 0
        """The distance from a parameter or a value to its gradient."""
        self.columns: list[Ints] = []
        """Slot -> the node of each term."""
        self.slots_of = [sorted({SLOTS.index(leaf) for leaf in leaves(expr)}) for expr in found.templates]
        """Template -> the slots that it reads."""
        self.reads = np.array([[slot in slots for slots in self.slots_of] for slot in range(len(SLOTS))])
        """Slot, template -> whether the template reads the slot."""
        self.stops = np.zeros(0, np.int64)
        """The ends of the complete areas."""
        self.occupied = b""
        """Place -> 1 if it holds a leaf or a value, else 0."""

    def lay_out(self, groups: Sequence[Group]) -> Loops:
        np, found = self.np, self.found
        self.columns = columns(found, len(groups))
        inputs = np.flatnonzero(found.kind == INPUT)
        self.place[inputs] = found.number[inputs]
        self.end = found.inputs
        self._close("x")
        self._place_constants()
        self._close("k")
        self._place_parameters(groups)
        parameters = self._close("p")
        self._plan_chains([group for group in groups if group.phase == Phase.FORWARD])
        loops = [loop for group in groups if group.phase == Phase.FORWARD for loop in self._loops(group)]
        values = self._close("v")
        self.mirror = values.stop - parameters.start
        occupied = np.zeros(values.stop + VECTOR, bool)
        occupied[self.place[self.place >= 0]] = True
        self.occupied = occupied.tobytes()
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
            loss=self._single_operand(found.loss),
            outputs=tuple(map(self._single_operand, found.outputs)),
            inputs=found.inputs,
            parameters=found.parameters,
            rows=self._rows(),
        )

    def _rows(self) -> Ints:
        """Place -> the row of the tape that it belongs to, as in Loops."""
        np, found = self.np, self.found
        values = found.mirrors == NONE
        rows = np.append(np.where(values, np.arange(found.nodes, dtype=np.int32), found.mirrors), NONE)
        rows[:-1][found.kind == CONSTANT] = NONE
        # No row computes a coefficient, so it belongs to the last row that it reads. It reads only values.
        terms = np.flatnonzero(((found.kind == GRADIENT) & values).take(found.owner))
        owners = found.owner[terms]
        rows[owners] = NONE
        np.maximum.at(rows, owners, rows[found.slots[terms]].max(axis=1))
        of_places: Ints = np.full(self.end, NONE, np.int32)
        placed = np.flatnonzero(self.place[:-1] != NONE)
        of_places[self.place[placed]] = rows[placed]
        return of_places

    def _close(self, name: str) -> Area:
        """Complete the area that starts at the end of the previous one. It ends at a multiple of VECTOR."""
        start = max((area.stop for area in self.areas.values()), default=0)
        self.end = -(-self.end // VECTOR) * VECTOR
        self.areas[name] = Area(name, start, self.end)
        self.stops = self.np.append(self.stops, self.end)
        return self.areas[name]

    def _block(self, size: int) -> int:
        """Reserve a new block and return its start."""
        if size > 2:
            self.end = -(-self.end // VECTOR) * VECTOR
        start, self.end = self.end, self.end + size
        return start

    def _single_operand(self, node: int) -> Operand:
        return self._simplified(Access(int(self.place[node]), ()))

    def _simplified(self, access: Access) -> Operand:
        """The access, or the constant that it reads for all lanes and terms."""
        index = access.base - self.areas["k"].start
        if not 0 <= index < len(self.numbers) or any(access.lanes) or any(access.terms):
            return access
        return self.numbers[index]

    # --- leaves ----------------------------------------------------------------------------------------------------

    def _place_constants(self) -> None:
        """Place constants. Equal ones share a place."""
        np, found = self.np, self.found
        constants = np.flatnonzero(found.kind == CONSTANT)
        numbers = found.number[constants]
        first, inverse = distinct(numbers.view(np.int64))
        self.numbers = numbers[first].tolist()
        self.place[constants] = self._block(len(first)) + inverse

    def _place_parameters(self, groups: Sequence[Group]) -> None:
        """Place parameters for the widest group that reads them: term by term, with lanes side by side and padded."""
        np, found = self.np, self.found
        is_fresh = np.append(found.kind == PARAMETER, False)
        remaining = int(is_fresh.sum())
        for group in sorted(groups, key=lambda group: -len(group.nodes)):
            if group.phase == Phase.FORWARD and remaining:
                terms = group.first + np.arange(group.terms)[:, None]
                for slot in range(self._width(found.template.take(terms[:, 0]).tolist())):
                    nodes = self.columns[slot].take(terms)
                    fresh = is_fresh.take(nodes)
                    if fresh.any():
                        placed = self._place_fresh(nodes, fresh)
                        is_fresh[placed] = False
                        remaining -= len(placed)
        unread = is_fresh.nonzero()[0]
        self.place[unread] = self._block(len(unread)) + np.arange(len(unread))

    def _place_fresh(self, nodes: Ints, fresh: Any) -> Ints:
        """Place the parameters that have no place yet, and return them.

        nodes: operands, shape (terms, lanes). fresh: whether each is a parameter without a place.
        """
        np = self.np
        at = np.flatnonzero(fresh)
        fresh_nodes = nodes.reshape(-1)[at]
        # A parameter that is read several times is placed where it is read first.
        first = self.place  # has a number for each node, and no place yet for these
        first[fresh_nodes[::-1]] = at[::-1]
        at = at[first[fresh_nodes] == at]
        term = at // nodes.shape[1]
        count = np.bincount(term, minlength=len(nodes))
        lanes = int(count.max())
        rank = np.arange(len(at))
        if (count[count > 0] == lanes).all():
            width = padded(lanes)
            place = self._block(width * (len(at) // lanes)) + rank // lanes * width + rank % lanes
        else:
            place = self._block(len(at)) + rank
        placed: Ints = nodes.reshape(-1)[at]
        self.place[placed] = place
        return placed

    def _plan_chains(self, groups: Sequence[Group]) -> None:
        """Place the values of chains that get shorter: groups of which each continues a part of the one before it.

        The largest of a row of scores takes a chain, and attention has rows of different lengths. All steps of a chain
        are equally far apart, so loops over rows that end at different steps have affine addresses, too.

        groups: those of the forward pass.
        """
        np, found = self.np, self.found
        group_of = np.full(found.nodes + 1, NONE, np.int32)
        before: dict[int, int] = {}
        for number, group in enumerate(groups):
            if group.terms == 1:
                group_of[group.nodes] = number
                operands = self.columns[0][group.first]
                its = group_of[operands]
                # Of two lanes that continue the same one, neither could have its place.
                if its[0] == NONE or (its != its[0]).any() or len(set(operands.tolist())) < len(operands):
                    continue
                if found.template[group.first[0]] == found.template[groups[its[0]].first[0]]:
                    before[number] = int(its[0])
        after = {first: number for number, first in before.items()}
        for head in sorted(set(after) - set(before)):
            chain = [head]
            while chain[-1] in after:
                chain.append(after[chain[-1]])
            lanes = len(groups[head].nodes)
            if len(chain) < 3 or len(groups[chain[-1]].nodes) == lanes:
                continue
            width = padded(lanes)
            self.planned[groups[head].nodes] = self._block(width * len(chain)) + np.arange(lanes)
            for number in chain[1:]:
                of_step = groups[number]
                self.planned[of_step.nodes] = self.planned[self.columns[0][of_step.first]] + width

    def _copies(self) -> Iterator[Copy]:
        """Copies of all parameters, in the order of the workspace. If the caller's order is irregular, they list it."""
        np, found = self.np, self.found
        parameters = np.flatnonzero(found.kind == PARAMETER)
        parameters = parameters[_order(self.place[parameters])]
        places, indices = self.place[parameters], found.number[parameters].astype(np.int32)
        pieces = nests(np.stack([places, indices])) if len(parameters) else []
        if len(pieces) > 2 * FEW:
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
        """Write a group as loops, usually one."""
        if len(group.nodes) == 1 and group.terms <= FEW:
            yield self._single(group)
            return
        np, found = self.np, self.found
        order, targets = self._targets(group)
        first = group.first[order]
        terms = first + np.arange(group.terms)[:, None] if group.terms > 1 else first[None]
        template = found.template.take(terms[:, 0])
        numbers = set(template.tolist())
        columns = [self.columns[slot].take(terms) for slot in range(self._width(numbers))]
        places = np.empty((len(columns), *terms.shape), np.int32)
        for slot, nodes in enumerate(columns):
            self.place.take(nodes, out=places[slot], mode="wrap")
        if any(len(self.slots_of[number]) < len(columns) for number in numbers):
            places[~self.reads[: len(columns), template]] = 0
        rows = (self.row.take(nodes[0]) for nodes in columns) if self.blocks else ()
        lanes = _Lanes(
            nodes=group.nodes[order],
            targets=targets,
            template=template,
            row=next((row for row in rows if row.any()), None),
            places=places,
            differ=_differ(places),
        )
        del terms, columns, rows
        changes = self._changes(lanes)
        for part in lanes.with_equal_steps(changes):
            yield from self._of_lanes(group.phase, part, changes)

    def _width(self, numbers: Iterable[int]) -> int:
        """The number of slots that templates of these numbers need."""
        return 1 + max(self.slots_of[number][-1] if self.slots_of[number] else 0 for number in numbers)

    def _changes(self, lanes: _Lanes) -> Any:
        """A mask of the terms after which a segment ends, because the next one has another template or operand area."""
        if len(lanes.template) == 1:
            return self.np.zeros(0, bool)
        area = self.stops.searchsorted(lanes.places[:, :, 0], side="right")
        changes = (lanes.template[1:] != lanes.template[:-1]) | (area[:, 1:] != area[:, :-1]).any(axis=0)
        if lanes.differ is None:
            return changes
        uneven = lanes.differ.any(axis=0) & ~changes
        # A segment also ends at a term where lanes differ in their steps, if that is rare among regular terms.
        if not uneven.any() or uneven.sum() > FEW:
            return changes
        if lanes.row is not None:
            # Gradients of queries and of keys are sums over the same scores, by row and by column: two loops.
            steps = lanes.places[:, 1:] - lanes.places[:, :-1]
            _, pattern = distinct(*steps[:, ~changes].reshape(-1, len(lanes.nodes)))
            if int(pattern.max()) == 1:
                return changes
        return changes | uneven

    def _of_lanes(self, phase: Phase, lanes: _Lanes, changes: Any) -> Iterator[Loop]:
        """Write these lanes as loops, usually one. changes: the terms after which a segment ends."""
        terms = _term_nests(lanes, changes)
        numbers = lanes.template[[nest.start for nest in terms.nests]].tolist()
        sequences = [
            lanes.places[slot, nest.start]
            for nest, number in zip(terms.nests, numbers)
            for slot in self.slots_of[number]
            if not terms.uneven[slot]
        ]
        pieces, longest = self._pieces(lanes, sequences)
        for piece in pieces:
            members = slice(piece.start, piece.start + piece.size)
            if longest:
                self.blocks += 1
                self.row[lanes.nodes[members]] = self.blocks * _OFFSET + self.np.arange(piece.size) // piece.counts[-1]
            if lanes.targets is None:
                target, room = self._new_target(lanes.nodes[members], piece.counts, longest)
            else:
                target, room = self._given_target(lanes.nodes[members], piece, lanes.targets[members], longest)
            segments = tuple(self._segments(lanes, terms, numbers, piece))
            yield Loop(phase=phase, counts=piece.counts, target=target, room=room, segments=segments)

    def _segments(self, lanes: _Lanes, terms: _Terms, numbers: Sequence[int], piece: Nest) -> Iterator[Segment]:
        """Write all terms of a piece of the lanes. numbers: for each nest of terms, the number of its template."""
        members = slice(piece.start, piece.start + piece.size)
        sequence = 0 if lanes.targets is None else 1
        for nest, number in zip(terms.nests, numbers):
            run = slice(nest.start, nest.start + nest.size)
            operands = []
            for slot in self.slots_of[number]:
                of_lanes = of_terms = None
                if not terms.uneven[slot]:
                    of_lanes = piece.strides_of(sequence)
                    sequence += 1
                if terms.regular[slot]:
                    of_terms = nest.strides_of(slot)
                places = lanes.places[slot, run, members]
                operands.append(self._operand(places, piece.counts, nest.counts, of_lanes, of_terms))
            yield Segment(self.found.templates[number], nest.counts, tuple(operands))

    def _pieces(self, lanes: _Lanes, sequences: Sequence[Ints]) -> tuple[list[Nest], int]:
        """Nests of these lanes; and if they have rows of different lengths, the longest, else 0.

        sequences: for each operand, lane -> place.
        """
        if lanes.row is not None:
            # A change of block or row ends a nest, also where addresses go on as they did.
            given = [] if lanes.targets is None else [lanes.targets]
            pieces, longest = _as_rows(nests(_stacked([lanes.row, *given, *sequences])), 2)
            if longest:
                return [piece._replace(strides=tuple(by[1:] for by in piece.strides)) for piece in pieces], longest
        return _as_rows(_lane_nests(lanes.targets, sequences, len(lanes.nodes)), 3)

    def _operand(
        self,
        places: Ints,
        lanes: tuple[int, ...],
        terms: tuple[int, ...],
        of_lanes: Optional[tuple[Stride, ...]],
        of_terms: Optional[tuple[Stride, ...]],
    ) -> Operand:
        """An access if these places are affine, else a table.

        places: shape (terms, lanes), both flattened. of_lanes, of_terms: the strides, if they are known. Those of lanes
        are known only if all lanes take the same steps from term to term.
        """
        if of_lanes is None and not (places - places[:1] != (places[:, 0] - places[0, 0])[:, None]).any():
            of_lanes = strides(places[0], lanes)
        if of_terms is None and of_lanes is not None:
            of_terms = strides(places[:, 0], terms)
        if of_lanes is None or of_terms is None:
            return Table(places.T)
        return self._simplified(Access(int(places[0, 0]), of_lanes, of_terms))

    def _single(self, group: Group) -> Loop:
        """A loop for one sum of a few terms. A fast path, because half of a network's groups are like this."""
        found = self.found
        node, first = int(group.nodes[0]), int(group.first[0])
        mirrored = NONE if group.phase == Phase.FORWARD else int(self.place[found.mirrors[node]])
        planned = int(self.planned[node])
        given = planned if mirrored == NONE else mirrored + self.mirror
        self.place[node] = self._block(1) if given == NONE else given
        terms = range(first, first + group.terms)
        segments = [
            Segment(
                found.templates[found.template[term]],
                (),
                tuple(self._single_operand(slot) for slot in found.slots[term].tolist() if slot != NONE),
            )
            for term in terms
        ]
        target = Access(int(self.place[node]), ())
        return Loop(phase=group.phase, counts=(), target=target, room=1, segments=tuple(segments))

    def _targets(self, group: Group) -> tuple[Union[Ints, slice], Optional[Ints]]:
        """The order of the lanes, and the places of their sums if they mirror nodes with places."""
        if group.phase == Phase.FORWARD:
            is_planned = self.planned[group.nodes[0]] != NONE
            return slice(None), self.planned[group.nodes] if is_planned else None
        mirrored = self.found.mirrors.take(group.nodes)
        if mirrored[0] == NONE:
            return slice(None), None
        places = self.place.take(mirrored)
        if (places < 0).any():
            return mirrored.argsort(), None
        targets = places + self.mirror
        order = _order(targets)
        return order, targets[order]

    def _new_target(self, nodes: Ints, counts: tuple[int, ...], longest: int) -> tuple[Access, int]:
        """Places for these sums in a new block, and the number of inner lanes that have room there.

        longest: the most inner lanes of a row, for rows that are as far apart as those of other loops.
        """
        inner = counts[-1] if counts else 1
        width = padded(max(inner, longest))
        steps, size = [int(inner > 1)] if counts else [], width  # a count of 1 has no step
        for count in counts[-2::-1]:
            steps.insert(0, size)
            size *= count
        target = Access(self._block(size), tuple(steps))
        self.place[nodes] = target.places(counts)
        return target, width if inner > 1 else 1

    def _given_target(self, nodes: Ints, piece: Nest, targets: Ints, longest: int) -> tuple[Access, int]:
        """The given places of these sums, and the number of inner lanes that have room there."""
        if self.blocks:
            self.row[nodes] = self.row[self.found.mirrors[nodes]]
        self.place[nodes] = targets
        steps: Optional[tuple[Stride, ...]] = piece.strides_of(0)
        if steps is None:
            steps = strides(targets, piece.counts)
            assert steps is not None
        target = Access(int(targets[0]), steps)
        inner = piece.counts[-1] if piece.counts else 1
        spare = padded(max(inner, longest)) - inner
        if steps[-1:] != (1,) or not self.mirror or not spare:
            return target, inner
        last = (targets[inner - 1 :: inner] - self.mirror).tolist()
        is_within = max(last) + spare < len(self.occupied) - VECTOR
        is_free = is_within and not any(1 in self.occupied[at + 1 : at + 1 + spare] for at in last)
        return target, inner + spare if is_free else inner


class _Lanes(NamedTuple):
    """Lanes of a group, and the places of their operands."""

    nodes: Ints
    """Lane -> node."""
    targets: Optional[Ints]
    """Lane -> the place of its sum, if given."""
    row: Optional[Ints]
    """Lane -> the block and row of an operand of its first term, if they are known."""
    template: Ints
    """Term -> the number of its template."""
    places: Ints
    """Places of operands, and 0 for slots that the template does not read; shape (slots, terms, lanes)."""
    differ: Any
    """Whether lanes differ in their steps to the next term; shape (slots, terms - 1). None if they do not."""

    def given(self, members: Any) -> Optional[Ints]:
        """The targets of some of the lanes."""
        return None if self.targets is None else self.targets[members]

    def with_equal_steps(self, changes: Any) -> Iterator[_Lanes]:
        """Split the lanes into parts that take the same steps within segments, unless that gives too many parts.

        The places of any two terms are affine. Lanes make a loop only if they all step the same way.
        """
        import numpy as np

        if self.differ is None or not (self.differ & ~changes).any():
            yield self
            return
        steps = (self.places[:, 1:] - self.places[:, :-1])[:, ~changes]
        _, pattern = distinct(*steps.reshape(-1, len(self.nodes)))
        if _is_irregular(int(pattern.max()) + 1, len(self.nodes)):
            yield self
            return
        for label in dict.fromkeys(pattern.tolist()):
            members = np.flatnonzero(pattern == label)
            places = self.places[:, :, members]
            yield self._replace(
                nodes=self.nodes[members],
                targets=self.given(members),
                row=None if self.row is None else self.row[members],
                places=places,
                differ=_differ(places),
            )


def _differ(places: Ints) -> Any:
    """Slot, term -> whether lanes differ in their steps to the next term. None if they do not.

    places: shape (slots, terms, lanes).
    """
    if places.shape[1] == 1 or places.shape[2] == 1:
        return None
    steps = places[:, 1:] - places[:, :-1]
    differ = (steps != steps[:, :, :1]).any(axis=2)
    return differ if differ.any() else None


def _order(places: Ints) -> Union[Ints, slice]:
    """The order that sorts these places, which are distinct."""
    import numpy as np

    if (places[1:] > places[:-1]).all():
        return slice(None)
    first, last = int(places.min()), int(places.max())
    if last - first > 8 * len(places):
        return np.argsort(places)
    # Places are dense, so looking through all of them takes less time than sorting.
    at = np.full(last - first + 1, -1, np.int32)
    at[places - first] = np.arange(len(places))
    return at[at >= 0]


class _Terms(NamedTuple):
    """The terms of some lanes."""

    nests: list[Nest]
    uneven: list[bool]
    """Slot -> whether lanes differ in their steps within nests."""
    regular: list[bool]
    """Slot -> whether the nests have its strides. They ignore uneven slots, and irregular ones."""


def _term_nests(lanes: _Lanes, changes: Any) -> _Terms:
    """Nests of terms. changes: the terms after which a nest must end."""
    import numpy as np

    first = lanes.places[:, :, 0]
    if first.shape[1] == 1:
        return _Terms([Nest(0, (), ())], [False] * len(first), [True] * len(first))
    breaks = int(changes.sum())
    ends = changes if breaks else None
    if lanes.differ is None:
        uneven = np.zeros(len(first), bool)
    else:
        uneven = (lanes.differ & ~changes).any(axis=1)
        first = np.where(uneven[:, None], 0, first)
    ignored = uneven
    found = nests(first, ends)
    if len(found) > breaks + FEW:
        ignored = uneven | [len(nests(row[None], ends)) > breaks + FEW for row in first]
        found = nests(np.where(ignored[:, None], 0, first), ends)
    return _Terms(found, uneven.tolist(), (~ignored).tolist())


def _lane_nests(targets: Optional[Ints], sequences: Sequence[Ints], count: int) -> list[Nest]:
    """Nests of lanes for all operands. If this takes many nests, lists or tables handle the irregular operands.

    Nests have strides for the targets, if given, and for each sequence; or none.

    targets: lane -> the place of its sum, if given. sequences: for each operand, lane -> place.
    """
    import numpy as np

    given = [] if targets is None else [targets]
    if not given and not sequences:
        sequences = [np.zeros(count, np.int64)]
    pieces = nests(_stacked([*given, *sequences]))
    if len(pieces) <= FEW:
        return pieces
    regular = [sequence for sequence in sequences if len(nests(sequence[None])) <= FEW]
    fewer = nests(np.stack([*given, *regular] or [np.zeros(count, np.int64)]))
    separable = all(
        strides(sequence[piece.start : piece.start + piece.size], piece.counts) is not None
        for sequence in sequences
        for piece in fewer
    )
    # A list for pieces of many sizes, as attention over earlier positions has, would be as long as all pieces.
    is_ragged = len({piece.counts for piece in pieces}) > FEW
    if (separable and not is_ragged) or _is_irregular(len(pieces), count):
        return [piece._replace(strides=()) for piece in fewer]  # they are those of some sequences
    return pieces


def _stacked(sequences: Sequence[Ints]) -> Ints:
    """`np.stack`, which takes three times as long for short sequences."""
    import numpy as np

    return np.concatenate(sequences).reshape(len(sequences), -1)


def _as_rows(pieces: list[Nest], fewest: int) -> tuple[list[Nest], int]:
    """If these are pieces with rows of different lengths, write all of them so. Return the longest length, else 0.

    Attention has them: with four heads, 4 rows of 2 scores for the second position, 4 rows of 3 for the third, and so
    on. Where one row follows another without a gap, `nests` finds one long row.

    fewest: as many pieces are needed at least.
    """
    if len(pieces) < fewest:
        return pieces, 0
    rows = max((piece.counts[0] for piece in pieces if len(piece.counts) == 2), default=1)
    found = []
    for piece in pieces:
        counts, steps = piece.counts or (1,), piece.strides
        if len(counts) == 1 and rows > 1 and counts[0] % rows == 0:
            inner = counts[0] // rows
            counts = (rows, inner)
            # A count of 1 has no step.
            steps = tuple(tuple(step * by for step in run) for run in steps for by in (inner, int(inner > 1)))
        if len(counts) != 1 + (rows > 1) or (rows > 1 and counts[0] != rows):
            return pieces, 0
        found.append(Nest(piece.start, counts, steps))
    lengths = {piece.counts[-1] for piece in found}
    return (found, max(lengths)) if len(lengths) == len(pieces) else (pieces, 0)


def _is_irregular(pieces: int, length: int) -> bool:
    """Whether there are too many pieces for this length to count as loops."""
    return pieces > max(FEW, length // 8)
