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

from zoomgrad.engines.rerolled.recover.sums import (
    COMPUTED,
    NONE,
    PARAMETER,
    SINK,
    VALUE,
    Sums,
    distinct,
    stable_order,
)

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints

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
    slots: list[Ints]
    """Slot -> the node of each term of `terms`."""
    consumer: Ints
    """The readers of sum 0, then those of sum 1, and so on."""
    end: Ints
    """Sum -> the end of its readers in `consumer`."""
    reads: Ints
    """Sum -> the number of its readers."""
    waiting: Ints
    """Sum -> how many of its operands are sums."""

    def readers(self, sums: Ints) -> Ints:
        end = self.end.take(sums)
        readers: Ints = self.consumer.take(ranges(end - self.reads.take(sums), end))
        return readers


def waves(form: Sums, first: Ints, count: Ints, node: Ints) -> Waves:
    """The waves of both passes. first, count, node: sum -> its first term, the number of its terms, its node."""
    import numpy as np

    kind = form.kind[node]
    edges = _edges(form, kind, first, count, node)
    in_order = _by_depth(edges)
    depth = np.zeros(len(kind), np.int32)
    for number, wave in enumerate(in_order):
        depth[wave] = number
    colours = None
    is_value = kind == VALUE
    # Whether values at several depths read the same parameter.
    reads = _parameter_reads(form, edges, is_value)
    if _read_by_several(form, reads, depth).any():
        is_shared = _read_by_several(form, reads, np.arange(len(kind)))
        colours = _colours(form, edges, count, node, in_order, is_shared)
        in_order = _by_colour(edges, depth, colours[node], PATIENCE * len(in_order))
    values, gradients = [], []
    for wave in in_order:
        of_forward = is_value.take(wave)
        if of_forward.any():
            values.append(wave[of_forward])
        if not of_forward.all():
            gradients.append(wave[~of_forward])
    return Waves(values, gradients, colours)


def _edges(form: Sums, kind: Ints, first: Ints, count: Ints, node: Ints) -> _Edges:
    import numpy as np

    inner = np.flatnonzero(kind != SINK)
    number = np.full(form.nodes + 1, -1, np.int32)
    number[node[inner]] = inner
    terms = ranges(first[inner], first[inner] + count[inner])
    reader = np.repeat(inner, count[inner])
    slots = [column.take(terms) for column in form.slots]
    operands, consumers = [], []
    for nodes in slots:
        operand = number.take(nodes)
        is_edge = operand >= 0
        operands.append(operand[is_edge])
        consumers.append(reader[is_edge])
    operand, consumer = np.concatenate(operands), np.concatenate(consumers)
    del operands, consumers, number
    consumer = consumer[stable_order(operand, len(kind))]
    reads = np.bincount(operand, minlength=len(kind))
    waiting = np.bincount(consumer, minlength=len(kind))
    return _Edges(inner, terms, reader, slots, consumer, reads.cumsum(), reads, waiting)


def _reached(edges: _Edges, waiting: Ints, wave: Ints) -> Ints:
    """The sums that are ready once this wave has run, in ascending order. Changes `waiting`."""
    import numpy as np

    reached = edges.readers(wave)
    np.subtract.at(waiting, reached, 1)
    ready: Ints = reached[waiting.take(reached) == 0]
    # A sum is in `reached` for each of its operands. Keep the one whose position was written last.
    position = np.arange(len(ready))
    waiting[ready] = position
    ready = ready[waiting.take(ready) == position]
    ready.sort()
    return ready


def _by_depth(edges: _Edges) -> list[Ints]:
    """All sums of a depth are a wave."""
    waiting = edges.waiting.copy()
    wave = edges.inner[waiting[edges.inner] == 0]
    by_depth = []
    while len(wave):
        by_depth.append(wave)
        wave = _reached(edges, waiting, wave)
    return by_depth


def _parameter_reads(form: Sums, edges: _Edges, is_value: Ints) -> list[tuple[Ints, Ints]]:
    """For each slot, the parameters that values read, and the values. is_value: of each sum."""
    import numpy as np

    of_values = is_value.take(edges.reader).nonzero()[0]
    readers = edges.reader.take(of_values)
    is_parameter = np.append(form.kind == PARAMETER, False)
    reads = []
    for column in edges.slots:
        nodes = column.take(of_values)
        at = is_parameter.take(nodes).nonzero()[0]
        reads.append((nodes[at], readers[at]))
    return reads


def _read_by_several(form: Sums, reads: list[tuple[Ints, Ints]], number: Ints) -> Ints:
    """Node -> whether it is a parameter that values of several numbers read. The last entry is for NONE.

    reads: from `_parameter_reads`. number: of each sum.
    """
    import numpy as np

    seen, several = np.full(form.nodes + 1, -1, np.int32), np.zeros(form.nodes + 1, bool)
    for nodes, readers in reads:
        seen[nodes] = number.take(readers)
    # Of several numbers, one was written last, and the others differ from it.
    for nodes, readers in reads:
        several[nodes[seen.take(nodes) != number.take(readers)]] = True
    return several


def _colours(form: Sums, edges: _Edges, count: Ints, node: Ints, in_order: list[Ints], is_shared: Ints) -> Ints:
    """Node -> its colour. in_order: the sums by depth. is_shared: node -> whether several values read it."""
    import numpy as np

    nodes = node[edges.inner]
    starts = np.cumsum(count[edges.inner]) - count[edges.inner]
    anchored = np.zeros(len(edges.terms), bool)
    for operands in edges.slots:
        anchored |= is_shared.take(operands)
    level = _levels(edges, anchored, in_order)[edges.inner].astype(np.uint64)
    template = form.template[edges.terms].astype(np.uint64)
    colours = np.append(np.minimum(form.kind, COMPUTED), (COMPUTED, NONE)).astype(np.uint64)
    named = np.flatnonzero(is_shared)
    colours[named] = (form.number[named].astype(np.uint64) + np.uint64(1)) << np.uint64(20)
    # The last entries are for any sum that a product with a shared parameter reads, and for NONE.
    any_sum = form.nodes
    is_sum = np.append(form.kind >= COMPUTED, False)
    slots = [np.where(anchored & is_sum.take(operands), any_sum, operands).astype(np.int64) for operands in edges.slots]
    mirrored = form.mirrors[nodes]
    for _ in range(RADIUS + 1):
        key = template.copy()
        for operands in slots:
            key *= np.uint64(ODD)
            key += colours.take(operands)
            key = mix(key)
        # The smallest and the largest hash of a term do not depend on how many terms there are.
        own = mix(np.minimum.reduceat(key, starts) * np.uint64(ODD) + np.maximum.reduceat(key, starts))
        own = mix((own + level) * np.uint64(ODD))
        colours[nodes] = own
        colours[nodes] = mix(own + np.where(mirrored == NONE, 0, colours.take(mirrored)).astype(np.uint64))
    return colours


def _levels(edges: _Edges, anchored: Ints, in_order: list[Ints]) -> Ints:
    """Sum -> its level. anchored: term -> whether it reads a shared parameter. in_order: the sums by depth."""
    import numpy as np

    own = np.zeros(len(edges.end), np.int32)
    own[edges.reader[anchored]] = 1
    # In the order of depths, the sums of a wave are neighbours, and so are their readers.
    sums = np.concatenate(in_order)
    place = np.empty(len(own), np.int64)
    place[sums] = np.arange(len(sums))
    readers, reads = place.take(edges.readers(sums)), edges.reads.take(sums)
    level = np.zeros(len(sums), np.int32)
    added = own.take(sums)
    start = first = 0
    for wave in in_order:
        members = slice(start, start + len(wave))
        level[members] += added[members]
        passed_on = level[members].repeat(reads[members])
        np.maximum.at(level, readers[first : first + len(passed_on)], passed_on)
        start, first = members.stop, first + len(passed_on)
    own[sums] = level
    return own


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
    by_colour: list[Ints] = []
    parts: dict[int, list[Ints]] = {}
    order: list[int] = []
    while len(ready) or order:
        when = due.take(ready) if len(by_colour) < most else np.zeros(len(ready), np.int32)
        for time in set(when.tolist()):
            if time not in parts:
                parts[time] = []
                heapq.heappush(order, time)
            parts[time].append(ready[when == time])
        wave, *others = parts.pop(heapq.heappop(order))
        if others:
            wave = np.sort(np.concatenate([wave, *others]))
        by_colour.append(wave)
        ready = _reached(edges, waiting, wave)
    return by_colour


def ranges(start: Ints, stop: Ints) -> Ints:
    """The numbers of each range from a start to its stop, one range after the other."""
    import numpy as np

    length = stop - start
    ends = length.cumsum()
    numbers: Ints = (stop - ends).repeat(length)
    numbers += np.arange(len(numbers))
    return numbers


def mix(key: Any) -> Any:
    """Multiply and shift, in place, as in SplitMix64, so that high bits reach the low ones."""
    import numpy as np

    key *= np.uint64(0xBF58476D1CE4E5B9)
    key ^= key >> np.uint64(29)
    return key
