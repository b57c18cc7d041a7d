"""Sums -> Groups: independent sums of one shape become the lanes of one loop.

Lanes are whole sums (neurons, samples, points), never the terms of one sum. Each lane keeps its order of additions, so
any number of lanes may run side by side without changing a bit.

Three terms:

- A *wave* is all sums of one pass at the same distance from the leaves: the length of the longest chain of sums between
  them. No sum of a wave reads another one. Sinks form one wave, the last.
- The *origin* of a node is its kind, if it is a leaf, or the group that computes it. Gradients are an exception: the
  gradients of one group of values have one origin, even if several groups compute them, because they have the same
  layout in memory as the values.
- The *shape* of a sum is the number of its terms, each term's template, and the origins of the operands. For a gradient
  or a sink it also includes the origin of the node whose gradient it is.

To group a wave, we sort its sums by a hash of their shapes, and compare each sum with the first one of the same hash.
If two shapes have the same hash, we group the wave by the shapes instead: a collision costs time, not correctness.

Example, continued from `fuse`. A group's lanes are the numbers of its sums:

    >>> for one in group(fuse(chain(pull(tape)))):
    ...     print(one.phase.name, one.nodes.tolist(), one.terms)
    FORWARD [8, 16] 3
    FORWARD [9, 17] 1
    FORWARD [18] 1
    BACKWARD [22, 30] 1
    SINK [24, 27, 33, 37] 1
    SINK [28, 38] 1

%8 and %16 have the same shape: a parameter, then twice a parameter times an input. %9 and %17 read that group, and %22
and %30 are its gradients. Of the six sinks, those of weights read an input and a gradient; those of biases (p3 and p0)
read only a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from engines.rerolled.recover.nest import nests
from engines.rerolled.recover.sums import (
    COMPUTED,
    CONSTANT,
    PARAMETER,
    SINK,
    SLOTS,
    VALUE,
    Sums,
    stable_order,
    starts_of,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engines.rerolled.recover.sums import Ints


class Phase(IntEnum):
    """When a group runs. Sinks come last, when no other sum still reads a parameter."""

    FORWARD = 0
    BACKWARD = 1
    SINK = 2


@dataclass(frozen=True)
class Group:
    """Independent sums of one shape."""

    phase: Phase
    nodes: Ints
    """Lane -> node."""
    first: Ints
    """Lane -> its first term."""
    terms: int
    """The number of terms of each lane."""


def group(found: Sums) -> list[Group]:
    """Group all sums, in an order in which the groups can run."""
    import numpy as np

    graph = _Graph(found)
    offset = graph.offset
    # An odd, well-mixed number for each position of a term. Importing numpy.random would take 20 ms.
    longest = int(graph.count.max(initial=0))
    weights = _mix(np, np.arange(1, longest + 1, dtype=np.uint64) * np.uint64(_ODD)) | np.uint64(1)
    made: list[Group] = []
    for phase, members in _waves(found, graph):
        for sums in _by_shape(found, members, graph, weights):
            if phase == Phase.FORWARD and len(sums) > 1:
                sums = _most_regular_order(found, sums, graph)
            nodes = graph.node[sums]
            if phase != Phase.SINK:  # which nothing reads
                graph.lane[nodes] = np.arange(len(nodes))
                # Gradients of one group of values have one origin, even if they are in several groups.
                mirrored = graph.origin[found.mirrors[nodes]]
                graph.origin[nodes] = np.where(mirrored > COMPUTED, mirrored + offset, COMPUTED + 1 + len(made))
            made.append(Group(phase, nodes, graph.first[sums], int(graph.count[sums[0]])))
    return made


class _Graph:
    """The sums by number, in the order of their nodes, and what is known about all nodes so far."""

    def __init__(self, found: Sums) -> None:
        import numpy as np

        self.first = starts_of(found.owner)
        """Sum -> its first term."""
        self.count = np.diff(self.first, append=len(found.owner))
        """Sum -> the number of its terms."""
        self.node = found.owner[self.first]
        self.offset = found.nodes + COMPUTED + 1
        """More than the number of a group. It separates origins of gradients from those of values."""
        self.origin = np.append(np.minimum(found.kind, COMPUTED).astype(np.int32), np.int32(-1))
        """Node -> a number for its origin: the kind of a leaf; above COMPUTED for a sum that is in a group. The last
        entry is for NONE."""
        self.lane = np.zeros(found.nodes + 1, np.int32)
        """Node -> its position among the nodes of its origin: the index of a leaf, the lane of a sum."""
        named = np.flatnonzero(found.kind < CONSTANT)
        self.lane[named] = found.number[named]

    def origins(self, slots: Ints, terms: Ints) -> Iterator[Ints]:
        """For each slot that these terms fill, the origins of their operands."""
        for column in slots.T:
            nodes = column.take(terms)
            if (nodes >= 0).any():
                yield self.origin.take(nodes)

    def rank(self, nodes: Ints) -> Ints:
        """A number for each of these leaves and values, which is consecutive within an origin."""
        import numpy as np

        group = np.maximum(self.origin[nodes].astype(np.int64) - COMPUTED, 0)
        ranks: Ints = self.lane[nodes] + group * _OFFSET
        return ranks


def _waves(found: Sums, graph: _Graph) -> Iterator[tuple[Phase, Ints]]:
    """The waves of the forward pass, those of the backward pass, then all sinks. Numbers of sums in a wave ascend."""
    import numpy as np

    kind = found.kind[graph.node]
    is_sink = kind == SINK
    # The graph has an edge for each operand that is a sum. Leave out sinks, which come after all other sums.
    inner = np.flatnonzero(~is_sink)
    number = np.full(found.nodes + 1, -1, np.int32)
    number[graph.node[inner]] = inner
    terms = _ranges(np, graph.first[inner], graph.first[inner] + graph.count[inner])
    reader = np.repeat(inner, graph.count[inner])
    operands, consumers = [], []
    for column in found.slots.T:
        operand = number.take(column.take(terms))
        is_edge = operand >= 0
        operands.append(operand[is_edge])
        consumers.append(reader[is_edge])
    operand, consumer = np.concatenate(operands), np.concatenate(consumers)
    del operands, consumers, reader, terms, number
    consumer = consumer[stable_order(operand, len(kind))]
    end = np.cumsum(np.bincount(operand, minlength=len(kind)))
    waiting = np.bincount(consumer, minlength=len(kind))
    wave = inner[waiting[inner] == 0]
    waves: dict[Phase, list[Ints]] = {Phase.FORWARD: [], Phase.BACKWARD: []}
    while len(wave):
        is_value = kind[wave] == VALUE
        for phase, members in ((Phase.FORWARD, wave[is_value]), (Phase.BACKWARD, wave[~is_value])):
            if len(members):
                waves[phase].append(members)
        reached = consumer[_ranges(np, np.where(wave > 0, end[wave - 1], 0), end[wave])]
        np.subtract.at(waiting, reached, 1)
        wave = np.sort(reached[waiting[reached] == 0])
        wave = wave[starts_of(wave)]
    for phase, found_waves in waves.items():
        yield from ((phase, members) for members in found_waves)
    sinks = np.flatnonzero(is_sink)
    if len(sinks):
        yield Phase.SINK, sinks


class _Shapes(NamedTuple):
    """The shapes of a wave's sums."""

    counts: Ints
    """Sum -> the number of its terms."""
    mirrored: Ints
    """Sum -> the origin of the node whose gradient it is."""
    start: Ints
    """Sum -> where its terms start in the columns."""
    columns: tuple[Ints, ...]
    """The template of each term; then, for each slot, the origin of each term's operand. Terms are in order of sums."""

    def hashes(self, weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Sum -> a hash of its shape. weights: an odd number for each position of a term in a sum."""
        import numpy as np

        template, *origins = self.columns
        key = template.astype(np.uint64)
        for column in origins:
            key *= np.uint64(_ODD)
            key += column.astype(np.uint64)
            key = _mix(np, key)
        if len(key) == len(self.counts):
            key *= weights[0]
        else:
            position = np.arange(len(key)) - np.repeat(self.start, self.counts)
            key *= weights[position]
            key = np.add.reduceat(key, self.start)
        key += self.counts.astype(np.uint64) * np.uint64(_ODD)
        key = _mix(np, key)
        key += self.mirrored.astype(np.uint64)
        hashes: NDArray[np.uint64] = _mix(np, key)
        return hashes

    def differ(self, other: Ints) -> Any:
        """Sum -> whether its shape differs from that of another one. other: sum -> an earlier sum, or itself."""
        import numpy as np

        differ = (self.counts != self.counts[other]) | (self.mirrored != self.mirrored[other])
        # If the other sum has fewer terms, this also reads terms of the sums that follow it, but none after this sum's.
        beside = np.repeat(self.start[other] - self.start, self.counts) + np.arange(len(self.columns[0]))
        terms = np.zeros(len(beside), bool)
        for column in self.columns:
            terms |= column != column[beside]
        if terms.any():
            differ |= np.logical_or.reduceat(terms, self.start)
        return differ

    def numbers(self) -> Ints:
        """Sum -> a number for its shape. Compares whole shapes: exact even if `hashes` collide, but slow."""
        import numpy as np

        of_terms = np.split(np.stack(self.columns, axis=1), self.start[1:])
        numbers: dict[tuple[int, bytes], int] = {}
        return np.array(
            [
                numbers.setdefault((mirrored, terms.tobytes()), len(numbers))
                for mirrored, terms in zip(self.mirrored.tolist(), of_terms)
            ]
        )


def _by_shape(found: Sums, members: Ints, graph: _Graph, weights: NDArray[np.uint64]) -> list[Ints]:
    """Split a wave's members into arrays, one for each shape. Members ascend in each array, and so do first members."""
    import numpy as np

    if len(members) == 1:
        return [members]
    counts, first = graph.count[members], graph.first[members]
    terms = _ranges(np, first, first + counts)
    shapes = _Shapes(
        counts,
        graph.origin[found.mirrors[graph.node[members]]],
        np.cumsum(counts) - counts,
        (found.template[terms], *graph.origins(found.slots, terms)),
    )
    order, starts = _runs(np, shapes.hashes(weights))
    leader = np.empty(len(members), np.int64)
    leader[order] = np.repeat(order[starts], np.diff(starts, append=len(order)))
    # Equal hashes prove nothing, so compare every sum with the first one of the same hash.
    if shapes.differ(leader).any():
        order, starts = _runs(np, shapes.numbers())
    return sorted(np.split(members[order], starts[1:]), key=lambda lanes: int(lanes[0]))


def _runs(np: Any, keys: Any) -> tuple[Ints, Ints]:
    """A stable order that brings equal keys together, and the position where each run of equal keys starts."""
    # Usually there are few keys, and their upper 16 bits differ.
    if keys.dtype == np.uint64:
        digits = (keys >> np.uint64(48)).astype(np.uint16)
        order = np.argsort(digits, kind="stable")
        starts = starts_of(keys[order])
        if len(starts) == len(starts_of(digits[order])):
            return order, starts
    order = np.argsort(keys, kind="stable")
    return order, starts_of(keys[order])


def _most_regular_order(found: Sums, sums: Ints, graph: _Graph) -> Ints:
    """Order the lanes so that the addresses of their operands form the fewest nests.

    The tape's order stays if it gives a single nest. Often it does not: depth-first numbering reaches the first row of
    one matrix, then all of another one, then the rest of the first. The alternatives sort by the operands of the last
    term: by its first slot, then its second, or the reverse.
    """
    import numpy as np

    first = graph.first[sums]
    last = first + graph.count[sums] - 1
    operands = graph.rank(np.concatenate([found.slots[first].T, found.slots[last].T]))
    fewest = len(nests(operands))
    if fewest == 1:
        return sums
    best = sums
    a, b = operands[len(SLOTS)], operands[len(SLOTS) + 1]
    is_parameter = found.kind[found.slots[last[0], 0]] == PARAMETER
    for keys in ((a, b), (b, a)) if is_parameter else ((b, a), (a, b)):
        order = np.lexsort(keys)
        pieces = len(nests(operands[:, order]))
        if pieces < fewest:
            fewest, best = pieces, sums[order]
    return best


_OFFSET = 1 << 32
"""More than the number of nodes. It separates ranks of two groups."""
_ODD = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio, made odd: Knuth's multiplier for hashing."""


def _mix(np: Any, key: Any) -> Any:
    """Multiply and shift, in place, as in SplitMix64, so that high bits reach the low ones."""
    key *= np.uint64(0xBF58476D1CE4E5B9)
    key ^= key >> np.uint64(29)
    return key


def _ranges(np: Any, start: Ints, stop: Ints) -> Ints:
    """The numbers of each range from a start to its stop, one range after the other."""
    length = stop - start
    numbers: Ints = np.repeat(stop - np.cumsum(length), length) + np.arange(int(length.sum()))
    return numbers
