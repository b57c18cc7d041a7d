"""Sums -> Groups: sums of one shape, none of which needs another, are the lanes of one loop.

Lanes are whole sums (neurons, samples, points), never the terms of one: each keeps its own order of additions, so that
any number of them may run side by side without changing a bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

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
        for lanes in _alike(found, members, count, first, origins, weights):
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


def _alike(
    found: Sums, members: Ints, count: Ints, first: Ints, origins: Ints, weights: NDArray[np.uint64]
) -> Iterator[Ints]:
    """Parts of the members that agree in all that a group agrees in."""
    import numpy as np

    if len(members) == 1:
        yield members
        return
    counts = count[members]
    terms = _ranges(np, first[members], first[members] + counts)
    start = np.cumsum(counts) - counts
    position = np.arange(len(terms)) - np.repeat(start, counts)
    # A hash of 64 bits in place of a comparison of thousands of terms; `check` compares what it put together.
    key = found.template[terms].astype(np.uint64)
    for slot in range(found.slots.shape[1]):
        key = _mix(np, key * _ODD + origins[found.slots[terms, slot]].astype(np.uint64))
    signature = np.add.reduceat(key * weights[position], start)
    mirrored = found.mirrors[members]
    signature = _mix(np, signature + counts.astype(np.uint64) * _ODD) + origins[mirrored].astype(np.uint64)
    _, inverse = np.unique(signature, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    parts = np.split(members[order], np.flatnonzero(np.diff(inverse[order])) + 1)
    yield from sorted(parts, key=lambda lanes: int(lanes[0]))


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
