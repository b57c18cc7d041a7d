"""Sums -> Groups: decide which sums share a loop.

Sums (rows of the tape, once chained and fused) share a loop, as its *lanes*, if none of them reads another one and all
have one shape. A lane is a whole sum (a neuron, a sample, a point), never a term of a sum. It keeps its own order of
additions, so any number of lanes may run side by side without changing a bit. Three terms:

- A *wave* is a set of sums of one pass, of which none reads another one: usually all sums at the same distance from
  the leaves. `waves` chooses them. Sinks form one wave, the last.
- The *origin* of a node is its kind, if it is a leaf, or the group that computes it. There are two exceptions. The
  gradients of one group of values have one origin, even if several groups compute them, because they have the same
  layout in memory as the values. So do groups of one colour, if `waves` uses colours.
- The *shape* of a sum is the number of its terms, each term's template, and the origins of the operands. For a gradient
  or a sink it also includes the origin of the node whose gradient it is.

Three later steps also decide what shares a loop. `lanes` divides a group whose lanes take different steps through
memory. `rearrange/in_rounds` runs equal series of loops as rounds of one loop. `rearrange/together` and `whole_batches`
run one loop for several rows of data.

Most waves have a single shape. To group others, we sort the sums by a hash of their shapes, and compare each sum with
the first one of the same hash. If two shapes have the same hash, the later one gets the next hash, and we compare
again: a collision costs time, not correctness.

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
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from zoomgrad.engines.rerolled.recover.loops import Phase
from zoomgrad.engines.rerolled.recover.nest import nests
from zoomgrad.engines.rerolled.recover.sums import APART, COMPUTED, CONSTANT, NONE, VALUE, Ints, Sums, ranges, starts_of
from zoomgrad.engines.rerolled.recover.templates import SLOTS
from zoomgrad.engines.rerolled.recover.waves import ODD, Irregular, mix, waves


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


def group(sums: Sums, most: Optional[int] = None) -> list[Group]:
    """Group all sums, in an order in which the groups can run.

    most: the most different groups of an irregular tape. Raises Irregular as soon as there must be more: see
    `_Regularity`.
    """
    groups: list[Group] = []
    waves_of_phases, colours = waves(sums, most)
    origins = _Origins(sums, colours)
    regularity = _Regularity(sums, most)
    for phase, of_phase in zip(Phase, waves_of_phases):
        for wave in of_phase:
            for lanes in _by_shape(wave, _Shapes(sums, origins, wave)):
                pieces = len(lanes)
                if phase == Phase.FORWARD and len(lanes) > 1:
                    lanes, pieces = _most_regular_order(sums, lanes, origins)
                made = Group(phase, sums.node.take(lanes), sums.first.take(lanes), int(sums.count[lanes[0]]))
                origins.add(made, len(groups))
                regularity.add(made, pieces)
                groups.append(made)
    return groups


# --- regular tapes ---------------------------------------------------------------------------------------------------

REGULAR = 4
"""The lanes of a regular group form up to this many nests."""
LARGE = 64
"""Terms of a large group."""
NEAR = 4
"""The most loops in a round of a series. A group like one of so many before it may belong to the next round."""


class _Regularity:
    """Whether a tape is irregular: it has too many different groups, and large regular ones have few of its terms.

    Groups are different if they have other templates, or another number of terms, than the NEAR groups before them; a
    group of one sum always counts. A network beside irregular sums keeps its loops if it has half of the forward terms.
    """

    def __init__(self, sums: Sums, most: Optional[int]) -> None:
        self._template, self._most = sums.template, most
        self._different = 0
        self._near: deque[tuple[Phase, bytes]] = deque(maxlen=NEAR)
        self._total = int((sums.kind[sums.owner] == VALUE).sum())
        """All forward terms."""
        self._others = 0
        """Forward terms so far that are not in large regular groups."""

    def add(self, group: Group, pieces: int) -> None:
        """Count a group. Raises Irregular if the tape is irregular, whatever the groups to come are.

        pieces: the nests that its lanes form.
        """
        start, terms = int(group.first[0]), len(group.nodes) * group.terms
        kind = group.phase, self._template[start : start + group.terms].tobytes()
        self._different += len(group.nodes) == 1 or kind not in self._near
        self._near.append(kind)
        if group.phase == Phase.FORWARD and (pieces > REGULAR or terms < LARGE or len(group.nodes) == 1):
            self._others += terms
        are_many = self._most is not None and self._different > self._most
        if are_many and 2 * self._others > self._total:
            raise Irregular


# --- shapes ----------------------------------------------------------------------------------------------------------


class _Origins:
    """The origins of all nodes, as far as they are known."""

    def __init__(self, sums: Sums, colours: Optional[Ints]) -> None:
        self._sums, self._colours = sums, colours
        self.of = np.append(np.minimum(sums.kind, COMPUTED).astype(np.int32), np.int32(NONE))
        """Node -> a number for its origin: the kind of a leaf; above COMPUTED for a sum that is in a group. The last
        entry is for NONE."""
        self.rank = np.zeros(sums.nodes + 1, np.int64)
        """Leaf or value -> a number that is consecutive within an origin: by the index of a leaf, the lane of a sum."""
        named = np.flatnonzero(sums.kind < CONSTANT)
        self.rank[named] = sums.number[named]
        self._homes: dict[int, tuple[int, int]] = {}
        """Colour of a group's first sum -> the number of the first such group, and the lanes of all so far."""

    def add(self, group: Group, number: int) -> None:
        """Give the sums of a group their origin."""
        if group.phase == Phase.SINK:  # which nothing reads
            return
        leader, nodes, lanes = int(group.nodes[0]), group.nodes, 0
        if self._colours is not None:
            # Groups of one colour differ in the number of their terms, and often are neighbours in memory.
            colour = int(self._colours[leader])
            number, lanes = self._homes.get(colour, (number, 0))
            self._homes[colour] = number, lanes + len(nodes)
        if group.phase == Phase.FORWARD:
            rank = (number + 1) * APART + lanes
            self.rank[nodes] = np.arange(rank, rank + len(nodes))
        # Gradients of one group of values have one origin, even if they are in several groups.
        mirrored, apart = int(self.of[self._sums.mirrors[leader]]), self._sums.nodes + COMPUTED + 1
        self.of[nodes] = mirrored + apart if mirrored > COMPUTED else COMPUTED + 1 + number


class _Shapes:
    """The shapes of a wave's sums."""

    def __init__(self, sums: Sums, origins: _Origins, wave: Ints) -> None:
        first, counts = sums.first.take(wave), sums.count.take(wave)
        terms = ranges(first + counts, counts)
        rows = np.empty((len(terms), 1 + len(SLOTS)), np.int32)
        rows[:, 0] = sums.template.take(terms)
        rows[:, 1:] = origins.of.take(sums.slots.take(terms, axis=1)).T
        self.words = rows.view(np.uint64)
        """The template of each term and the origins of its operands: two numbers, of four half as long. Terms are in
        order of sums."""
        self.counts = counts
        """Sum -> the number of its terms."""
        self.start = counts.cumsum() - counts
        """Sum -> where its terms start in `words`."""
        self.mirrored = origins.of.take(sums.mirrors.take(sums.node.take(wave)))
        """Sum -> the origin of the node whose gradient it is."""

    def are_equal(self) -> bool:
        """Whether all shapes are equal: most waves have a single one, and this takes less time than hashing."""
        counts, mirrored, words = self.counts, self.mirrored, self.words
        if (counts != counts[0]).any() or (mirrored != mirrored[0]).any():
            return False
        of_sums = words.reshape(len(counts), -1)
        return bool((of_sums == of_sums[0]).all())

    def hashes(self) -> Ints:
        """Sum -> a hash of its shape."""
        # An odd, well-mixed number for each position of a term. Importing numpy.random would take 20 ms.
        weights = mix(np.arange(1, self.counts.max() + 1, dtype=np.uint64) * np.uint64(ODD)) | np.uint64(1)
        key = mix(mix(self.words[:, 0] * np.uint64(ODD)) + self.words[:, 1])
        key *= weights.take(np.arange(len(key)) - self.start.repeat(self.counts))
        key = mix(np.add.reduceat(key, self.start) + self.counts.astype(np.uint64) * np.uint64(ODD))
        hashes: Ints = mix(key + self.mirrored.astype(np.uint64))
        return hashes

    def differ(self, other: Ints) -> Any:
        """Sum -> whether its shape differs from that of another one. other: sum -> an earlier sum, or itself."""
        # If the other sum has fewer terms, this also reads terms of the sums that follow it, but none after this sum's.
        beside = (self.start[other] - self.start).repeat(self.counts)
        beside += np.arange(len(beside))
        differ = (self.words != self.words.take(beside, axis=0)).any(axis=1)
        differ = np.logical_or.reduceat(differ, self.start)
        return differ | (self.counts != self.counts[other]) | (self.mirrored != self.mirrored[other])


def _by_shape(wave: Ints, shapes: _Shapes) -> list[Ints]:
    """Split a wave's sums into arrays, one for each shape. Sums ascend in each array, and so do first sums."""
    if shapes.are_equal():
        return [wave]
    keys = shapes.hashes()
    leader = np.empty(len(wave), np.int64)
    while True:
        order = keys.argsort(kind="stable")
        starts = starts_of(keys[order])
        leader[order] = order[starts].repeat(np.diff(starts, append=len(order)))
        differ = shapes.differ(leader)
        if not differ.any():
            break
        keys[differ] += np.uint64(1)
    parts = np.split(wave[order], starts[1:])
    return sorted(parts, key=lambda lanes: int(lanes[0]))


def _most_regular_order(sums: Sums, lanes: Ints, origins: _Origins) -> tuple[Ints, int]:
    """Order the lanes so that the addresses of their operands form the fewest nests. Return their number, too.

    The tape's order stays if it gives a single nest. Often it does not: depth-first numbering reaches the first row of
    one matrix, then all of another one, then the rest of the first. The alternative sorts by the operands of the last
    term: by its second slot, then its first.
    """
    last = sums.first.take(lanes) + sums.count.take(lanes) - 1
    operands = first, second, _ = origins.rank.take(sums.slots.take(last, axis=1))
    pieces = len(nests(operands))
    if pieces > 1:
        order = np.lexsort((first, second))
        fewer = len(nests(operands[:, order]))
        if fewer < pieces:
            return lanes[order], fewer
    return lanes, pieces
