"""Sums -> Groups: sums of one shape, none of which needs another, are the lanes of one loop.

Lanes are whole sums (neurons, samples, points), never the terms of one: each keeps its own order of additions, so that
any number of them may run side by side without changing a bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from engines.rerolled.recover.nest import nests
from engines.rerolled.recover.sums import COMPUTED, CONSTANT, PARAMETER, SINK, SLOTS, VALUE, Sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engines.rerolled.recover.sums import Ints


class Phase(IntEnum):
    """When a group runs. Sinks come last: then nothing else reads a parameter any more."""

    FORWARD = 0
    BACKWARD = 1
    SINK = 2


@dataclass(frozen=True)
class Group:
    """Sums whose terms have the same templates, and operands of the same origin, position by position."""

    phase: Phase
    nodes: Ints
    """Lane -> node."""
    first: Ints
    """Lane -> its first term."""
    terms: int
    """How many each lane has."""


def group(found: Sums) -> list[Group]:
    """In an order in which they can run."""
    import numpy as np

    nodes = found.nodes
    count: Any = np.bincount(found.owner, minlength=nodes)
    first = np.cumsum(count) - count
    region = np.minimum(found.kind, COMPUTED).astype(np.int64)
    """Node -> what it comes from: the kind of a leaf, the group of a sum."""
    origins = np.append(region, -1)  # the last one is NONE's
    # A number for each position, odd and mixed well; numpy.random would take 20 ms to import.
    weights = _mix(np, np.arange(1, int(count.max(initial=0)) + 1, dtype=np.uint64) * np.uint64(_ODD)) | np.uint64(1)
    rank = np.append(np.where(found.kind < CONSTANT, found.number, 0.0).astype(np.int64), 0)
    """Where a node stands among those of its origin: a leaf's index, a sum's lane."""
    made: list[Group] = []
    for phase, members in _waves(found, count):
        for lanes in _by_shape(found, members, count, first, origins, weights):
            if phase == Phase.FORWARD and len(lanes) > 1:
                lanes = _in_order(found, lanes, first, count, rank)
            rank[lanes] = np.arange(len(lanes)) + (len(made) + 1) * _BESIDE
            # A gradient comes from where its value does, beside which it will lie: backward waves are finer.
            mirrored = origins[found.mirrors[lanes]]
            origins[lanes] = np.where(mirrored > COMPUTED, mirrored + _BESIDE, COMPUTED + 1 + len(made))
            made.append(Group(phase, lanes, first[lanes], int(count[lanes[0]])))
    return made


def _waves(found: Sums, count: Ints) -> Iterator[tuple[Phase, Ints]]:
    """Sums by their distance from the leaves: the forward pass, then the backward pass, then all sinks at once."""
    import numpy as np

    is_sink = found.kind == SINK
    operands = found.slots.ravel()
    consumers = np.repeat(found.owner, found.slots.shape[1])
    # An edge for each operand that is a sum; sinks wait for everything anyway.
    edges = np.flatnonzero((operands >= 0) & (found.kind[operands] >= COMPUTED) & ~is_sink[consumers])
    operands, consumers = operands[edges], consumers[edges]
    order = np.argsort(operands, kind="stable")
    consumers = consumers[order]
    end = np.cumsum(np.bincount(operands, minlength=found.nodes))
    waiting = np.bincount(consumers, minlength=found.nodes)
    wave = np.flatnonzero((count > 0) & (waiting == 0) & ~is_sink)
    waves: dict[Phase, list[Ints]] = {Phase.FORWARD: [], Phase.BACKWARD: []}
    while len(wave):
        is_value = found.kind[wave] == VALUE
        for phase, members in ((Phase.FORWARD, wave[is_value]), (Phase.BACKWARD, wave[~is_value])):
            if len(members):
                waves[phase].append(members)
        reached = consumers[_ranges(np, np.where(wave > 0, end[wave - 1], 0), end[wave])]
        np.subtract.at(waiting, reached, 1)
        wave = np.unique(reached[waiting[reached] == 0])
    for phase, found_waves in waves.items():
        yield from ((phase, members) for members in found_waves)
    sinks = np.flatnonzero(is_sink & (count > 0))
    if len(sinks):
        yield Phase.SINK, sinks


class _Shapes(NamedTuple):
    """The shapes of a wave's sums: all that the lanes of one group have in common."""

    counts: Ints
    """Sum -> how many terms it has."""
    mirrored: Ints
    """Sum -> the origin of the node whose gradient it is."""
    start: Ints
    """Sum -> where its terms start in the columns."""
    columns: tuple[Ints, ...]
    """Term -> its template; then, for each slot, the origin of the operand. The terms of one sum after another."""

    def hashes(self, weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Sum -> 64 bits. weights: an odd number for each position of a term within its sum."""
        import numpy as np

        template, *origins = self.columns
        key = template.astype(np.uint64)
        for column in origins:
            key = _mix(np, key * _ODD + column.view(np.uint64))
        position = np.arange(len(key)) - np.repeat(self.start, self.counts)
        of_terms = np.add.reduceat(key * weights[position], self.start)
        key = _mix(np, of_terms + self.counts.astype(np.uint64) * _ODD)
        hashes: NDArray[np.uint64] = _mix(np, key + self.mirrored.view(np.uint64))
        return hashes

    def differ(self, other: Ints) -> Any:
        """A mask of the sums whose shape is not that of another one. other: sum -> an earlier sum, or itself."""
        import numpy as np

        differ = (self.counts != self.counts[other]) | (self.mirrored != self.mirrored[other])
        # Where the other sum has fewer terms, this runs on into the sums after it, and never beyond this sum itself.
        beside = np.repeat(self.start[other] - self.start, self.counts) + np.arange(len(self.columns[0]))
        terms = np.zeros(len(beside), bool)
        for column in self.columns:
            terms |= column != column[beside]
        if terms.any():
            differ |= np.logical_or.reduceat(terms, self.start)
        return differ

    def numbers(self) -> Ints:
        """Sum -> the number of its shape, by a comparison of whole shapes: as hashes, but exact, and slow."""
        import numpy as np

        of_terms = np.split(np.stack(self.columns, axis=1), self.start[1:])
        numbers: dict[tuple[int, bytes], int] = {}
        return np.array(
            [
                numbers.setdefault((mirrored, terms.tobytes()), len(numbers))
                for mirrored, terms in zip(self.mirrored.tolist(), of_terms)
            ]
        )


def _by_shape(
    found: Sums, members: Ints, count: Ints, first: Ints, origins: Ints, weights: NDArray[np.uint64]
) -> list[Ints]:
    """The members of a wave, divided by shape; members ascend, and so do the first ones of the parts."""
    import numpy as np

    if len(members) == 1:
        return [members]
    counts = count[members]
    terms = _ranges(np, first[members], first[members] + counts)
    shapes = _Shapes(
        counts,
        origins[found.mirrors[members]],
        np.cumsum(counts) - counts,
        (found.template[terms], *(origins[found.slots[terms, slot]] for slot in range(found.slots.shape[1]))),
    )
    order, starts = _runs(np, shapes.hashes(weights))
    leader = np.empty(len(members), np.int64)
    leader[order] = np.repeat(order[starts], np.diff(starts, append=len(order)))
    # Equal hashes prove nothing: every sum is compared with the first one of the same hash.
    if shapes.differ(leader).any():
        order, starts = _runs(np, shapes.numbers())
    return sorted(np.split(members[order], starts[1:]), key=lambda lanes: int(lanes[0]))


def _runs(np: Any, keys: Any) -> tuple[Ints, Ints]:
    """The order that brings equal keys together, and where in it each of them starts."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


def _in_order(found: Sums, lanes: Ints, first: Ints, count: Ints, rank: Ints) -> Ints:
    """The lanes in the order in which their operands follow one another most evenly.

    That of the tape, where it will do; it may reach the first row of one matrix, all of another, then the rest of the
    first. Otherwise by operands: those of one input side by side, with its weights in order, or the other way round.
    """
    import numpy as np

    last = first[lanes] + count[lanes] - 1
    operands = rank[np.concatenate([found.slots[first[lanes]].T, found.slots[last].T])]
    fewest = len(nests(operands))
    if fewest == 1:
        return lanes
    best = lanes
    a, b = operands[len(SLOTS)], operands[len(SLOTS) + 1]
    is_parameter = found.kind[found.slots[last[0], 0]] == PARAMETER
    for keys in ((a, b), (b, a)) if is_parameter else ((b, a), (a, b)):
        order = np.lexsort(keys)
        pieces = len(nests(operands[:, order]))
        if pieces < fewest:
            fewest, best = pieces, lanes[order]
    return best


_BESIDE = 1 << 32
_ODD = 0x9E3779B97F4A7C15


def _mix(np: Any, key: Any) -> Any:
    key = key * np.uint64(0xBF58476D1CE4E5B9)
    return key ^ (key >> np.uint64(29))


def _ranges(np: Any, start: Ints, stop: Ints) -> Ints:
    """The numbers from each start to its stop, one range after the other."""
    length = stop - start
    numbers: Ints = np.repeat(stop - np.cumsum(length), length) + np.arange(int(length.sum()))
    return numbers
