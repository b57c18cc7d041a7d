"""Sums -> waves: sets of independent sums, in an order in which they can run.

By default, a wave is all sums of one pass at the same *depth*: the length of the longest chain of sums between them and
the leaves. A network that is applied several times in one graph, such as at each position of a text, may have its
copies at different depths, because what an earlier layer computes for the last position takes more steps than for the
first. Then equal sums would be in different waves, and each copy would get its own loops.

If some parameter is read at several depths, sums of equal *colour* wait for each other:

- A parameter that several values read has its own colour. The *level* of a sum is the number of such layers below
  it: the most sums with a shared parameter on a way from the leaves.
- The colour of a sum is a hash of its level and its surroundings: its templates, and the colours of its operands,
  RADIUS sums deep. It ignores how many terms there are, because attention has a term for each earlier position. A
  product with a shared parameter ignores which sum the other operand is: all copies of a neuron have one colour.
- A sum is due at the largest depth of any sum of its colour. The next wave is all sums that are ready, and due first.

Any such order is right, because a sum is ready once its operands are computed, and the order of terms stays. Colours
only decide which sums run side by side.

Example: `(p0 * x0.tanh()).tanh() * (p0 * x1.tanh().tanh()).tanh()` has these sums:

    %2 = tanh(x0)
    %3 = p0 * %2
    %4 = tanh(%3)
    %6 = tanh(x1)
    %7 = tanh(%6)
    %8 = p0 * %7
    %9 = tanh(%8)
    %10 = %4 * %9

By depth, its waves would be %2 %6, %3 %7, %4 %8, %9, %10. But both products have one colour, so %3 waits for %8, and %4
for %9. The waves are %2 %6, %7, %3 %8, %4 %9, %10.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from engines.rerolled.recover.sums import (
    COMPUTED,
    NONE,
    PARAMETER,
    SINK,
    VALUE,
    Sums,
    distinct,
    stable_order,
    starts_of,
)

if TYPE_CHECKING:
    from engines.rerolled.recover.sums import Ints

RADIUS = 2
"""Rounds of hashing."""
PATIENCE = 4
"""Up to this many waves for each depth, sums wait."""
ODD = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio, made odd: Knuth's multiplier for hashing."""


class Waves(NamedTuple):
    """Sums in running order; the numbers of the sums in a wave ascend."""

    values: list[Ints]
    gradients: list[Ints]
    colours: Optional[Ints]
    """Node -> its colour, if sums of equal colour waited for each other."""


class _Edges(NamedTuple):
    """Which sums read which, without sinks."""

    inner: Ints
    """The sums that are not sinks."""
    terms: Ints
    """Their terms."""
    reader: Ints
    """Term of `terms` -> its sum."""
    consumer: Ints
    """The readers of sum 0, then those of sum 1, and so on."""
    end: Ints
    """Sum -> the end of its readers in `consumer`."""
    waiting: Ints
    """Sum -> how many of its operands are sums."""

    def readers(self, sums: Ints) -> Ints:
        import numpy as np

        found: Ints = self.consumer[ranges(np.where(sums > 0, self.end[sums - 1], 0), self.end[sums])]
        return found


def waves(found: Sums, first: Ints, count: Ints, node: Ints) -> Waves:
    """The waves of both passes. first, count, node: sum -> its first term, the number of its terms, its node."""
    import numpy as np

    kind = found.kind[node]
    edges = _edges(found, kind, first, count, node)
    in_order = _by_depth(edges)
    depth = np.zeros(len(kind), np.int32)
    for number, wave in enumerate(in_order):
        depth[wave] = number
    colours = None
    if _is_repeated(found, edges, kind, depth):
        colours = _colours(found, edges, count, node, in_order)
        in_order = _by_colour(edges, depth, colours[node], PATIENCE * len(in_order))
    is_value = kind == VALUE
    return Waves(
        [wave[is_value[wave]] for wave in in_order if is_value[wave].any()],
        [wave[~is_value[wave]] for wave in in_order if not is_value[wave].all()],
        colours,
    )


def _edges(found: Sums, kind: Ints, first: Ints, count: Ints, node: Ints) -> _Edges:
    import numpy as np

    inner = np.flatnonzero(kind != SINK)
    number = np.full(found.nodes + 1, -1, np.int32)
    number[node[inner]] = inner
    terms = ranges(first[inner], first[inner] + count[inner])
    reader = np.repeat(inner, count[inner])
    operands, consumers = [], []
    for column in found.slots.T:
        operand = number.take(column.take(terms))
        is_edge = operand >= 0
        operands.append(operand[is_edge])
        consumers.append(reader[is_edge])
    operand, consumer = np.concatenate(operands), np.concatenate(consumers)
    del operands, consumers, number
    consumer = consumer[stable_order(operand, len(kind))]
    end = np.cumsum(np.bincount(operand, minlength=len(kind)))
    return _Edges(inner, terms, reader, consumer, end, np.bincount(consumer, minlength=len(kind)))


def _reached(edges: _Edges, waiting: Ints, wave: Ints) -> Ints:
    """The sums that are ready once this wave has run, in ascending order. Changes `waiting`."""
    import numpy as np

    reached = edges.readers(wave)
    np.subtract.at(waiting, reached, 1)
    ready: Ints = np.sort(reached[waiting[reached] == 0])
    first: Ints = ready[starts_of(ready)]
    return first


def _by_depth(edges: _Edges) -> list[Ints]:
    """All sums of a depth are a wave."""
    waiting = edges.waiting.copy()
    wave = edges.inner[waiting[edges.inner] == 0]
    found = []
    while len(wave):
        found.append(wave)
        wave = _reached(edges, waiting, wave)
    return found


def _is_repeated(found: Sums, edges: _Edges, kind: Ints, depth: Ints) -> bool:
    """Whether values at several depths read the same parameter."""
    import numpy as np

    is_value = kind[edges.reader] == VALUE
    reader_depth = depth[edges.reader[is_value]]
    parameters = np.append(found.kind == PARAMETER, False)
    seen = np.full(found.nodes + 1, -1, np.int32)
    reads = []
    for column in found.slots.T:
        nodes = column.take(edges.terms[is_value])
        at = np.flatnonzero(parameters.take(nodes))
        reads.append((nodes[at], reader_depth[at]))
        seen[nodes[at]] = reader_depth[at]
    # Of several depths, one was written last, and the others differ from it.
    return any((seen[nodes] != depths).any() for nodes, depths in reads)


def _colours(found: Sums, edges: _Edges, count: Ints, node: Ints, in_order: list[Ints]) -> Ints:
    """Node -> its colour. in_order: the sums by depth."""
    import numpy as np

    nodes = node[edges.inner]
    starts = np.cumsum(count[edges.inner]) - count[edges.inner]
    is_shared = _read_by_several(found, edges)
    slots = [column.take(edges.terms) for column in found.slots.T]
    anchored = np.zeros(len(edges.terms), bool)
    for operands in slots:
        anchored |= is_shared.take(operands)
    level = _levels(edges, anchored, in_order, len(count))[edges.inner].astype(np.uint64)
    template = found.template[edges.terms].astype(np.uint64)
    colours = np.append(np.minimum(found.kind, COMPUTED), NONE).astype(np.uint64)
    named = np.flatnonzero(is_shared)
    colours[named] = (found.number[named].astype(np.uint64) + np.uint64(1)) << np.uint64(20)
    leaves = colours.copy()
    is_sum = np.append(found.kind >= COMPUTED, True)
    for _ in range(RADIUS + 1):
        key = template.copy()
        for operands in slots:
            key *= np.uint64(ODD)
            key += np.where(anchored & is_sum.take(operands), leaves.take(operands), colours.take(operands))
            key = mix(key)
        # The smallest and the largest hash of a term do not depend on how many terms there are.
        own = mix(np.minimum.reduceat(key, starts) * np.uint64(ODD) + np.maximum.reduceat(key, starts))
        own = mix((own + level) * np.uint64(ODD))
        mirrored = found.mirrors[nodes]
        following = colours.copy()
        following[nodes] = own
        following[nodes] = mix(own + np.where(mirrored == NONE, 0, following[mirrored]).astype(np.uint64))
        colours = following
    return colours


def _read_by_several(found: Sums, edges: _Edges) -> Ints:
    """Node -> whether it is a parameter that several values read. The last entry is for NONE."""
    import numpy as np

    is_value = (found.kind[found.owner] == VALUE)[edges.terms]
    first, last = np.full(found.nodes + 1, found.nodes), np.full(found.nodes + 1, -1)
    for column in found.slots.T:
        nodes, readers = column.take(edges.terms)[is_value], edges.reader[is_value]
        np.minimum.at(first, nodes, readers)
        np.maximum.at(last, nodes, readers)
    is_shared: Ints = (first < last) & np.append(found.kind == PARAMETER, False)
    return is_shared


def _levels(edges: _Edges, anchored: Ints, in_order: list[Ints], size: int) -> Ints:
    """Sum -> its level. anchored: term -> whether it reads a shared parameter. in_order: the sums by depth."""
    import numpy as np

    own = np.zeros(size, np.int32)
    own[edges.reader[anchored]] = 1
    level = np.zeros(size, np.int32)
    for wave in in_order:
        level[wave] += own[wave]
        end = edges.end[wave]
        reads = end - np.where(wave > 0, edges.end[wave - 1], 0)
        np.maximum.at(level, edges.readers(wave), np.repeat(level[wave], reads))
    return level


def _by_colour(edges: _Edges, depth: Ints, colour: Ints, most: int) -> list[Ints]:
    """Waves of sums that are ready, and due first. After that many waves, sums wait no more.

    depth, colour: of each sum.
    """
    import numpy as np

    _, number = distinct(colour[edges.inner].view(np.int64))
    latest = np.zeros(int(number.max(initial=0)) + 1, np.int32)
    np.maximum.at(latest, number, depth[edges.inner])
    due = np.zeros(len(depth), np.int32)
    due[edges.inner] = latest[number]
    waiting = edges.waiting.copy()
    ready = edges.inner[waiting[edges.inner] == 0]
    found: list[Ints] = []
    parts: dict[int, list[Ints]] = {}
    order: list[int] = []
    while len(ready) or order:
        when = due[ready] if len(found) < most else np.zeros(len(ready), np.int32)
        for time in dict.fromkeys(when.tolist()):
            if time not in parts:
                parts[time] = []
                heapq.heappush(order, time)
            parts[time].append(ready[when == time])
        wave = np.sort(np.concatenate(parts.pop(heapq.heappop(order))))
        found.append(wave)
        ready = _reached(edges, waiting, wave)
    return found


def ranges(start: Ints, stop: Ints) -> Ints:
    """The numbers of each range from a start to its stop, one range after the other."""
    import numpy as np

    length = stop - start
    numbers: Ints = np.repeat(stop - np.cumsum(length), length) + np.arange(int(length.sum()))
    return numbers


def mix(key: Any) -> Any:
    """Multiply and shift, in place, as in SplitMix64, so that high bits reach the low ones."""
    import numpy as np

    key *= np.uint64(0xBF58476D1CE4E5B9)
    key ^= key >> np.uint64(29)
    return key
