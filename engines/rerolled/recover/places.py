"""Where nodes live: the workspace, its areas, and the places of leaves and of values that are known in advance.

A *place* is the number of a double in the workspace. A *block* is a run of places for lanes side by side, padded to
whole vectors. `layout` fills the areas in order, and each area block by block.

Example: three parameters that two lanes read, lane 0 as p0 then p1, lane 1 as p2 then p1. Term by term, with lanes side
by side and p1 placed where it is read first, they lie in the order p0 p2, p1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Union

import numpy as np

from zoomgrad.engines.rerolled.recover.groups import Group
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Area, Copy, Loops, Operand, Unlike
from zoomgrad.engines.rerolled.recover.nest import nests, with_lists
from zoomgrad.engines.rerolled.recover.sums import CONSTANT, NONE, PARAMETER, Ints, Sums, distinct

WRITTEN_SINGLY = 4
"""Up to this many terms of a single sum, pieces or irregular terms are written one by one."""

CONFLICT = 128
"""Numbers in a kilobyte. Rows so far apart share the sets of a cache."""


def padded(count: int) -> int:
    """The number of places for this many lanes side by side, including padding: 4 for 3 lanes, and 56 for 50.

    Blocks of more than 2 numbers start at multiples of VECTOR.
    """
    return count if count < 3 else 4 if count <= 4 else -(-count // VECTOR) * VECTOR


def apart(lanes: int) -> int:
    """How far apart to put lanes that one loop reads term by term: whole vectors, but no multiple of a kilobyte.

    For 512 lanes this is 520. A column of rows 512 apart falls into a few sets of a first-level cache, and each pass
    over it fetches it anew. The product of a layer of 512 units with 100 rows, in tiles of 5 rows by 2 vectors of 4,
    took 1.6 times as long.
    """
    width = padded(lanes)
    return width if width % CONFLICT else width + VECTOR


class Places:
    """The workspace while it fills, at first with the constants."""

    def __init__(self, sums: Sums) -> None:
        constants = np.flatnonzero(sums.kind == CONSTANT)
        self.of = np.full(sums.nodes + 1, NONE, np.int32)
        """Node -> its place. The last entry is for NONE, any place for slots that a template does not read."""
        self.of[NONE] = 0
        self.end = 0
        """The place of the next block."""
        self.areas: dict[str, Area] = {}
        """Complete areas by name, in the order of the workspace."""
        numbers = sums.number[constants]
        first, inverse = distinct(numbers.view(np.int64))
        self.of[constants] = self.block(len(first)) + inverse
        self.numbers: tuple[float, ...] = tuple(numbers[first].tolist())
        """The constants, in the order of their places."""
        self.close("k")

    def block(self, size: int) -> int:
        """Reserve a new block and return its start."""
        if size > 2:
            self.end = -(-self.end // VECTOR) * VECTOR
        start, self.end = self.end, self.end + size
        return start

    def close(self, name: str, like: str = "") -> None:
        """Complete the area that starts at the end of the previous one. It ends at a multiple of VECTOR.

        like: an area of the same size.
        """
        start = max((area.stop for area in self.areas.values()), default=0)
        self.end = start + self.areas[like].size if like else -(-self.end // VECTOR) * VECTOR
        self.areas[name] = Area(name, start, self.end)

    def gradients(self) -> Ints:
        """Node -> the place of its gradient, in q or g, if it has a place in p or v; else NONE."""
        places: Ints = np.full_like(self.of, NONE)
        for area in (self.areas["p"], self.areas["v"]):
            inside = (self.of >= area.start) & (self.of < area.stop)
            places[inside] = self.of[inside] + area.size
        return places

    def operand(self, access: Access) -> Operand:
        """The access, or the constant that it reads for all lanes and terms."""
        index = access.base - self.areas["k"].start
        if not 0 <= index < len(self.numbers) or any(access.lanes) or any(access.terms):
            return access
        return self.numbers[index]

    def access(self, node: int) -> Access:
        return Access(int(self.of[node]), ())


def put_parameters(sums: Sums, groups: Sequence[Group], places: Places) -> None:
    """Place parameters for the widest group that reads them: term by term, with lanes side by side and padded.

    groups: those of the forward pass.
    """
    is_fresh = np.append(sums.kind == PARAMETER, False)
    for group in sorted(groups, key=lambda group: -len(group.nodes)):
        if not is_fresh.any():
            break
        for nodes in sums.operands(group.first + np.arange(group.terms)[:, None]):
            fresh = is_fresh.take(nodes, mode="wrap")
            if fresh.any():
                is_fresh[_put_fresh(nodes, fresh, places)] = False
    unread = np.flatnonzero(is_fresh)
    places.of[unread] = places.block(len(unread)) + np.arange(len(unread))


def put_parameters_as(like: Loops, sums: Sums, places: Places) -> None:
    """Place parameters where they are in other loops. Raises Unlike if these lack a place, or room for constants."""
    p, parameters = like.area("p"), np.flatnonzero(sums.kind == PARAMETER)
    of_parameter: Ints = np.full(sums.parameters, NONE)
    indices, at = like.indices_and_places()
    of_parameter[indices] = at
    places.of[parameters] = of_parameter[sums.number[parameters].astype(int)]
    if places.end > p.start or (places.of[parameters] == NONE).any():
        raise Unlike
    places.end = p.stop


def _put_fresh(nodes: Ints, fresh: Any, places: Places) -> Ints:
    """Place the parameters that have no place yet, and return them.

    nodes: operands, shape (terms, lanes). fresh: whether each is a parameter without a place.
    """
    at = np.flatnonzero(fresh)
    fresh_nodes = nodes.reshape(-1)[at]
    # A parameter that is read several times is placed where it is read first. The last write wins, so write backwards.
    first = np.empty(len(places.of), np.int64)
    first[fresh_nodes[::-1]] = at[::-1]
    at = at[first[fresh_nodes] == at]
    term = at // nodes.shape[1]
    count: Any = np.bincount(term, minlength=len(nodes))
    lanes = int(count.max())
    rank = np.arange(len(at))
    if (count[count > 0] == lanes).all():
        width = apart(lanes)
        place = places.block(width * (len(at) // lanes)) + rank // lanes * width + rank % lanes
    else:
        place = places.block(len(at)) + rank
    placed: Ints = nodes.reshape(-1)[at]
    places.of[placed] = place
    return placed


def plan_chains(sums: Sums, groups: Sequence[Group], places: Places) -> Ints:
    """Plan the values of chains that get shorter: groups of which each continues a part of the one before it.

    The largest of a row of scores takes a chain, and attention has rows of different lengths. All steps of a chain are
    equally far apart, so loops over rows that end at different steps have affine addresses, too.

    groups: those of the forward pass. Returns node -> its place, or NONE if that is not planned.
    """
    planned = np.full(sums.nodes + 1, NONE, np.int32)
    for first, *others in _shrinking_chains(sums, groups):
        lanes = len(first.nodes)
        width = padded(lanes)
        planned[first.nodes] = places.block(width * (1 + len(others))) + np.arange(lanes)
        for step in others:
            planned[step.nodes] = planned[sums.slots[0, step.first]] + width
    return planned


def _shrinking_chains(sums: Sums, groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Chains of at least three groups, whose last group has fewer lanes than the first."""
    group_of = np.full(sums.nodes + 1, NONE, np.int32)
    after: dict[int, int] = {}
    for number, group in enumerate(groups):
        if group.terms != 1:
            continue
        group_of[group.nodes] = number
        nodes = sums.slots[0, group.first]
        sources = group_of[nodes]
        source = int(sources[0])
        # Two lanes can't share one predecessor's slot.
        if source == NONE or (sources != source).any() or len(set(nodes.tolist())) < len(nodes):
            continue
        if sums.template[group.first[0]] == sums.template[groups[source].first[0]]:
            after[source] = number
    for head in sorted(set(after) - set(after.values())):
        chain, number = [groups[head]], head
        while number in after:
            number = after[number]
            chain.append(groups[number])
        if len(chain) >= 3 and len(chain[-1].nodes) < len(chain[0].nodes):
            yield chain


def copies_of(places: Ints, indices: Ints) -> list[Copy]:
    """Copies between places and the caller's indices. They list offsets if one of the two is irregular."""
    columns = (places, indices)
    pieces = nests(np.array(columns)) if len(places) else []
    if len(pieces) > 2 * WRITTEN_SINGLY:
        regular = min((nests(column[None]) for column in columns), key=len)
        pieces = with_lists(regular, columns)
    copies = []
    for piece in pieces:
        lanes: list[Any] = list(zip(piece.counts, *map(piece.strides_of, range(2))))
        listed = (at for at, lane in enumerate(lanes, 1) if any(isinstance(stride, tuple) for stride in lane))
        outer = max(0, len(lanes) - 2, *listed)
        # The lanes that remain are the rectangle; a lane that is absent has one place.
        lanes[outer:] = [(1, 0, 0), (1, 0, 0), *lanes[outer:]][-2:]
        counts, *sides = zip(*lanes)
        copies.append(Copy(counts, *(Access(int(column[piece.start]), side) for column, side in zip(columns, sides))))
    return copies


def ascending(numbers: Ints) -> Union[Ints, slice]:
    """The order that sorts these numbers, which are distinct."""
    return slice(None) if (numbers[1:] > numbers[:-1]).all() else numbers.argsort()
