"""Sums -> Groups: independent sums of one shape become the lanes of one loop.

Lanes are whole sums (neurons, samples, points), never the terms of one sum. Each lane keeps its order of additions, so
any number of lanes may run side by side without changing a bit.

Three terms:

- A *wave* is a set of sums of one pass, of which none reads another one: usually all sums at the same distance from
  the leaves. `waves` chooses them. Sinks form one wave, the last.
- The *origin* of a node is its kind, if it is a leaf, or the group that computes it. There are two exceptions. The
  gradients of one group of values have one origin, even if several groups compute them, because they have the same
  layout in memory as the values. So do groups of one colour, if `waves` uses colours.
- The *shape* of a sum is the number of its terms, each term's template, and the origins of the operands. For a gradient
  or a sink it also includes the origin of the node whose gradient it is.

Most waves have a single shape. To group others, we sort the sums by a hash of their shapes, and compare each sum with
the first one of the same hash. If two shapes have the same hash, we group the wave by the shapes instead: a collision
costs time, not correctness.

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

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.recover.nest import nests
from zoomgrad.engines.rerolled.recover.sums import (
    COMPUTED,
    CONSTANT,
    PARAMETER,
    SINK,
    SLOTS,
    Sums,
    starts_of,
)
from zoomgrad.engines.rerolled.recover.waves import ODD, Waves, mix, ranges, waves

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from zoomgrad.engines.rerolled.recover.sums import Ints


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


class Irregular(Exception):
    """Most of the tape has no loops that pay."""


def group(form: Sums, most: Optional[int] = None) -> list[Group]:
    """Group all sums, in an order in which the groups can run.

    most: the most different groups of an irregular tape. Raises Irregular as soon as there must be more: see `_Loose`.
    """
    import numpy as np

    graph = _SumGraph(form)
    # An odd, well-mixed number for each position of a term. Importing numpy.random would take 20 ms.
    longest = int(graph.count.max(initial=0))
    weights = mix(np.arange(1, longest + 1, dtype=np.uint64) * np.uint64(ODD)) | np.uint64(1)
    made: list[Group] = []
    in_waves = waves(form, graph.first, graph.count, graph.node)
    loose = _Loose(form, graph, most, in_waves.values)
    homes: dict[int, tuple[int, int]] = {}
    """Colour of a group's first sum -> the number of the first such group, and the lanes of all so far."""
    for phase, members, shapes in _of_both_passes(form, graph, in_waves):
        of_wave = _by_shape(members, shapes, weights)
        loose.count(phase, of_wave)
        for sums in of_wave:
            leader = int(graph.node[sums[0]])
            if phase == Phase.FORWARD and len(sums) > 1 and (loose.is_large(sums) or not loose.are_many):
                sums, pieces = _most_regular_order(form, sums, graph)
                loose.regular += int(pieces <= FEW and loose.is_large(sums)) * loose.terms(sums)
            nodes = graph.node.take(sums)
            if phase != Phase.SINK:  # which nothing reads
                number, lanes = len(made), 0
                if in_waves.colours is not None:
                    # Groups of one colour differ in the number of their terms, and often are neighbours in memory.
                    colour = int(in_waves.colours[leader])
                    number, lanes = homes.get(colour, (number, 0))
                    homes[colour] = number, lanes + len(nodes)
                if phase == Phase.FORWARD:
                    rank = (number + 1) * _OFFSET + lanes
                    graph.rank[nodes] = np.arange(rank, rank + len(nodes))
                # Gradients of one group of values have one origin, even if they are in several groups.
                mirrored = int(graph.origin[form.mirrors[leader]])
                graph.origin[nodes] = mirrored + graph.offset if mirrored > COMPUTED else COMPUTED + 1 + number
            made.append(Group(phase, nodes, graph.first.take(sums), int(graph.count[sums[0]])))
        loose.check()
    return made


FEW = 4
"""The lanes of a regular group form up to this many nests."""
LARGE = 64
"""Terms of a large group."""
NEAR = 4
"""The most loops in a round of a series. A group like one of so many before it may belong to the next round."""


class _Loose:
    """Whether a tape is irregular: it has too many different groups, and large regular ones have few of its terms.

    Groups are different if they have other templates, or another number of terms, than the NEAR groups before them; a
    group of one sum always counts. A network beside irregular sums keeps its loops if it has half of the forward terms.
    """

    def __init__(self, form: Sums, graph: _SumGraph, most: Optional[int], forward: list[Ints]) -> None:
        self._form, self._graph, self._most = form, graph, most
        self._left = [int(graph.count.take(wave).sum()) for wave in forward]
        """The forward terms of each wave to come."""
        self._total = sum(self._left)
        self._different = 0
        self._near: deque[tuple[Phase, bytes]] = deque(maxlen=NEAR)
        self.regular = 0
        """Forward terms in large regular groups so far."""

    @property
    def are_many(self) -> bool:
        """Whether there are too many different groups already."""
        return self._most is not None and self._different > self._most

    def terms(self, sums: Ints) -> int:
        """The number of terms of a group."""
        return len(sums) * int(self._graph.count[sums[0]])

    def is_large(self, sums: Ints) -> bool:
        return self.terms(sums) >= LARGE

    def count(self, phase: Phase, of_wave: Sequence[Ints]) -> None:
        """Count the groups of the next wave."""
        first, count, template = self._graph.first, self._graph.count, self._form.template
        for sums in of_wave:
            start = int(first[sums[0]])
            kind = phase, template[start : start + int(count[sums[0]])].tobytes()
            self._different += len(sums) == 1 or kind not in self._near
            self._near.append(kind)
        if phase == Phase.FORWARD:
            del self._left[0]

    def check(self) -> None:
        """Raise Irregular if the tape is irregular, whatever the waves to come are."""
        if self.are_many and 2 * (self.regular + sum(self._left)) < self._total:
            raise Irregular


class _SumGraph:
    """The sums by number, in the order of their nodes, and what is known about all nodes so far."""

    def __init__(self, form: Sums) -> None:
        import numpy as np

        self.first = starts_of(form.owner)
        """Sum -> its first term."""
        self.count = np.diff(self.first, append=len(form.owner))
        """Sum -> the number of its terms."""
        self.node = form.owner[self.first]
        self.offset = form.nodes + COMPUTED + 1
        """More than the number of a group. It separates origins of gradients from those of values."""
        self.origin = np.append(np.minimum(form.kind, COMPUTED).astype(np.int32), np.int32(-1))
        """Node -> a number for its origin: the kind of a leaf; above COMPUTED for a sum that is in a group. The last
        entry is for NONE."""
        self.rank = np.zeros(form.nodes + 1, np.int64)
        """Leaf or value -> a number that is consecutive within an origin: by the index of a leaf, the lane of a sum."""
        named = np.flatnonzero(form.kind < CONSTANT)
        self.rank[named] = form.number[named]


def _of_both_passes(form: Sums, graph: _SumGraph, in_waves: Waves) -> Iterator[tuple[Phase, Ints, _Shapes]]:
    """The waves of the forward pass, those of the backward pass, then all sinks; and the shapes of their sums."""
    sinks = (form.kind[graph.node] == SINK).nonzero()[0]
    of_sinks = [sinks] if len(sinks) else []
    for phase, of_phase in zip(Phase, (in_waves.values, in_waves.gradients, of_sinks)):
        if of_phase:
            yield from ((phase, *wave) for wave in zip(of_phase, _shapes(form, graph, of_phase)))


def _shapes(form: Sums, graph: _SumGraph, in_waves: list[Ints]) -> Iterator[_Shapes]:
    """The shapes of each wave. Those of a wave depend on the groups of all waves before it."""
    import numpy as np

    # NumPy takes most of its time per call, so look up at once all that does not depend on groups.
    members = np.concatenate(in_waves)
    counts, first = graph.count.take(members), graph.first.take(members)
    mirrors = form.mirrors.take(graph.node.take(members))
    terms = ranges(first, first + counts)
    rows = np.empty((len(terms), 1 + len(SLOTS)), np.int32)
    rows[:, 0] = form.template.take(terms)
    rows[:, 1:] = form.slots.take(terms, axis=1).T
    del terms, members, first
    operands, words = rows[:, 1:], rows.view(np.uint64)
    at = start = 0
    for wave in in_waves:
        sums = slice(at, at + len(wave))
        ends = counts[sums].cumsum()
        of_wave = slice(start, start + int(ends[-1]))
        operands[of_wave] = graph.origin.take(operands[of_wave])
        mirrored = graph.origin.take(mirrors[sums])
        yield _Shapes(counts[sums], mirrored, ends - counts[sums], words[of_wave])
        at, start = sums.stop, of_wave.stop


class _Shapes(NamedTuple):
    """The shapes of a wave's sums."""

    counts: Ints
    """Sum -> the number of its terms."""
    mirrored: Ints
    """Sum -> the origin of the node whose gradient it is."""
    start: Ints
    """Sum -> where its terms start in `words`."""
    words: NDArray[np.uint64]
    """The template of each term and the origins of its operands: two numbers, of four half as long. Terms are in order
    of sums."""

    def are_equal(self) -> bool:
        """Whether all shapes are equal: most waves have a single one, and this takes less time than hashing."""
        counts, mirrored, words = self.counts, self.mirrored, self.words
        if (counts != counts[0]).any() or (mirrored != mirrored[0]).any():
            return False
        of_sums = words.reshape(len(counts), -1)
        return bool((of_sums == of_sums[0]).all())

    def hashes(self, weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Sum -> a hash of its shape. weights: an odd number for each position of a term in a sum."""
        import numpy as np

        key = mix(self.words[:, 0] * np.uint64(ODD))
        key += self.words[:, 1]
        key = mix(key)
        if len(key) == len(self.counts):
            key *= weights[0]
        else:
            position = np.arange(len(key)) - self.start.repeat(self.counts)
            key *= weights.take(position)
            key = np.add.reduceat(key, self.start)
        key += self.counts.astype(np.uint64) * np.uint64(ODD)
        key = mix(key)
        key += self.mirrored.astype(np.uint64)
        hashes: NDArray[np.uint64] = mix(key)
        return hashes

    def differ(self, other: Ints) -> Any:
        """Sum -> whether its shape differs from that of another one. other: sum -> an earlier sum, or itself."""
        import numpy as np

        differ = (self.counts != self.counts[other]) | (self.mirrored != self.mirrored[other])
        # If the other sum has fewer terms, this also reads terms of the sums that follow it, but none after this sum's.
        beside = (self.start[other] - self.start).repeat(self.counts)
        beside += np.arange(len(beside))
        terms = (self.words != self.words.take(beside, axis=0)).any(axis=1)
        if terms.any():
            differ |= np.logical_or.reduceat(terms, self.start)
        return differ

    def numbers(self) -> Ints:
        """Sum -> a number for its shape. Compares whole shapes: exact even if `hashes` collide, but slow."""
        import numpy as np

        of_terms = np.split(self.words, self.start[1:])
        numbers: dict[tuple[int, bytes], int] = {}
        return np.array(
            [
                numbers.setdefault((mirrored, terms.tobytes()), len(numbers))
                for mirrored, terms in zip(self.mirrored.tolist(), of_terms)
            ]
        )


def _by_shape(members: Ints, shapes: _Shapes, weights: NDArray[np.uint64]) -> list[Ints]:
    """Split a wave's members into arrays, one for each shape. Members ascend in each array, and so do first members."""
    import numpy as np

    if shapes.are_equal():
        return [members]
    order, starts = _runs(np, shapes.hashes(weights))
    leader = np.empty(len(members), np.int64)
    leader[order] = order[starts].repeat(np.diff(starts, append=len(order)))
    # Equal hashes prove nothing, so compare every sum with the first one of the same hash.
    if shapes.differ(leader).any():
        order, starts = _runs(np, shapes.numbers())
    ordered, bounds = members[order], [*starts.tolist(), len(order)]
    return sorted(map(ordered.__getitem__, map(slice, bounds, bounds[1:])), key=lambda lanes: int(lanes[0]))


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


def _most_regular_order(form: Sums, sums: Ints, graph: _SumGraph) -> tuple[Ints, int]:
    """Order the lanes so that the addresses of their operands form the fewest nests. Return their number, too.

    The tape's order stays if it gives a single nest. Often it does not: depth-first numbering reaches the first row of
    one matrix, then all of another one, then the rest of the first. The alternatives sort by the operands of the last
    term: by its first slot, then its second, or the reverse.
    """
    import numpy as np

    first = graph.first.take(sums)
    steps = graph.count[sums[0]] - 1
    last = first + steps
    operands = graph.rank.take(form.slots.take(last, axis=1))
    a, b, _ = operands
    if steps:
        operands = np.concatenate([graph.rank.take(form.slots.take(first, axis=1)), operands])
    fewest = len(nests(operands))
    if fewest == 1:
        return sums, 1
    best = sums
    is_parameter = form.kind[form.slots[0, last[0]]] == PARAMETER
    for keys in ((a, b), (b, a)) if is_parameter else ((b, a), (a, b)):
        order = np.lexsort(keys)
        pieces = len(nests(operands[:, order]))
        if pieces < fewest:
            fewest, best = pieces, sums[order]
    return best, fewest


_OFFSET = 1 << 32
"""More than the number of nodes. It separates ranks of two groups."""
