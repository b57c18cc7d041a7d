"""Sums -> waves: sets of independent sums, in an order in which they can run.

By default, a wave is all sums of one pass at the same *depth*: the length of the longest chain of sums between them and
the leaves. A network that is applied several times in one graph, such as at each position of a text, may have its
copies at different depths, because what an earlier layer computes for the last position takes more steps than for the
first. Then equal sums would be in different waves, and each copy would get its own loops.

If some parameter is read at several depths, sums of equal *colour* wait for each other:

- A parameter that several values read has its own colour. The *level* of a sum is the number of layers with such
  parameters below it: the most sums that read one on any path from a leaf.
- The colour of a sum is a hash of the level, the templates and the operands: which shared parameter, which kind of
  leaf, or any sum. So all copies of a neuron have one colour. It ignores how many terms there are, because attention
  has a term for each earlier position.
- A sum is due at the largest depth of any sum of its colour. The next wave is the ready sums that are due first.

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
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

import numpy as np

from zoomgrad.engines.rerolled.recover.sums import COMPUTED, NONE, PARAMETER, SINK, VALUE, Ints, Sums, distinct, ranges
from zoomgrad.engines.rerolled.recover.templates import SLOTS

PATIENCE = 4
"""Sums wait for up to this many waves for each depth."""
ODD = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio, made odd: Knuth's multiplier for hashing."""


class Irregular(Exception):
    """Most of the tape has no loops that pay."""


def waves(all_sums: Sums, most: Optional[int] = None) -> tuple[list[list[Ints]], Optional[Ints]]:
    """The waves of values, of gradients and of sinks, which are one wave; the numbers of the sums in a wave ascend.

    Also returns node -> its colour, if sums of equal colour waited for each other. Raises Irregular if more than
    `most` waves, with most of the sums, have a single sum.
    """
    kinds = all_sums.kind.take(all_sums.node)
    inner, sinks = np.flatnonzero(kinds != SINK), np.flatnonzero(kinds == SINK)
    sums = all_sums.with_terms(np.flatnonzero(all_sums.kind.take(all_sums.owner) != SINK))
    edges = _edges(sums)
    depth = np.zeros(len(inner), np.int32)
    in_order, readers = _in_order(edges, depth, 0)
    if most is not None and len(inner) / 2 < sum(len(wave) == 1 for wave in in_order) > most:
        raise Irregular
    for number, wave in enumerate(in_order):
        depth[wave] = number
    is_value = kinds[inner] == VALUE
    reads = _parameter_reads(sums, is_value)
    colours = None
    if _read_by_several(sums, reads, depth).any():
        is_shared = _read_by_several(sums, reads, np.arange(len(inner)))
        colours = _colours(sums, is_shared, _levels(sums, edges, is_shared, zip(in_order, readers)))
        _, numbers = distinct(colours[sums.node].view(np.int64))
        latest = np.zeros(int(numbers.max(initial=0)) + 1, np.int32)
        np.maximum.at(latest, numbers, depth)
        in_order, _ = _in_order(edges, latest[numbers], PATIENCE * len(in_order))
    values = [inner.take(wave[is_value.take(wave)]) for wave in in_order]
    gradients = [inner.take(wave[~is_value.take(wave)]) for wave in in_order]
    return [[wave for wave in waves if len(wave)] for waves in (values, gradients, [sinks])], colours


class _Edges(NamedTuple):
    """Which sums read which."""

    readers: Ints
    """The readers of sum 0, then those of sum 1, and so on; a reader occurs once for each operand."""
    end: Ints
    """Sum -> the end of its readers."""
    reads: Ints
    """Sum -> the number of its readers."""
    operands: Ints
    """Sum -> how many of its operands are sums."""


def _edges(sums: Sums) -> _Edges:
    number = np.full(sums.nodes + 1, NONE, np.int32)
    number[sums.node] = np.arange(len(sums.node))
    operand, reader = number.take(sums.slots.ravel(), mode="wrap"), _readers(sums)
    is_edge = np.flatnonzero(operand != NONE)
    operand, reader = operand.take(is_edge), reader.take(is_edge)
    reads = np.bincount(operand, minlength=len(sums.node))
    readers = reader.take(np.argsort(operand, kind="stable"))
    return _Edges(readers, reads.cumsum(), reads, np.bincount(reader, minlength=len(sums.node)))


def _readers(sums: Sums) -> Ints:
    """Slot and term, flattened -> the sum that reads the operand."""
    return np.tile(np.repeat(np.arange(len(sums.node), dtype=np.int32), sums.count), len(SLOTS))


def _in_order(edges: _Edges, due: Ints, most: int) -> tuple[list[Ints], list[Ints]]:
    """Waves of the ready sums that are due first; and the readers of each. After `most` waves, sums wait no more.

    due: sum -> when it is due.
    """
    waiting = edges.operands.copy()
    ready = np.flatnonzero(waiting == 0)
    waves: list[Ints] = []
    readers: list[Ints] = []
    of_time: dict[int, list[Ints]] = {}
    times: list[int] = []
    while len(ready) or times:
        when = due.take(ready) if len(waves) < most else np.zeros(len(ready), np.int32)
        for time in set(when.tolist()):
            if time not in of_time:
                heapq.heappush(times, time)
            of_time.setdefault(time, []).append(ready[when == time])
        wave = np.sort(np.concatenate(of_time.pop(heapq.heappop(times))))
        waves.append(wave)
        reached = edges.readers.take(ranges(edges.end.take(wave), edges.reads.take(wave)))
        readers.append(reached)
        np.subtract.at(waiting, reached, 1)
        ready = reached[waiting.take(reached) == 0]
        # A sum is in `reached` for each of its operands. Keep it once: where its last position was written.
        position = np.arange(len(ready))
        waiting[ready] = position
        ready = ready[waiting.take(ready) == position]
    return waves, readers


def _parameter_reads(sums: Sums, is_value: Ints) -> tuple[Ints, Ints]:
    """The parameters that values read, and the values. is_value: of each sum."""
    is_parameter = np.append(sums.kind == PARAMETER, False)
    at = np.flatnonzero(is_parameter.take(sums.slots.ravel(), mode="wrap"))
    parameters, readers = sums.slots.ravel().take(at), _readers(sums).take(at)
    of_values = is_value.take(readers)
    return parameters.compress(of_values), readers.compress(of_values)


def _read_by_several(sums: Sums, reads: tuple[Ints, Ints], number: Ints) -> Ints:
    """Node -> whether it is a parameter that values with different numbers read. The last entry is for NONE.

    reads: from `_parameter_reads`. number: of each sum.
    """
    parameters, numbers = reads[0], number[reads[1]]
    last, several = np.zeros(sums.nodes + 1, np.int32), np.zeros(sums.nodes + 1, bool)
    last[parameters] = numbers
    # Of several numbers, one was written last, and the others differ from it.
    several[parameters[last[parameters] != numbers]] = True
    return several


def _levels(sums: Sums, edges: _Edges, is_shared: Ints, by_depth: Iterable[tuple[Ints, Ints]]) -> Ints:
    """Sum -> its level. is_shared: node -> whether several values read it. by_depth: sums and their readers."""
    adds = np.logical_or.reduceat(is_shared[sums.slots].any(axis=0), sums.first)
    level = np.zeros(len(adds), np.int32)
    for wave, readers in by_depth:
        level[wave] += adds[wave]
        np.maximum.at(level, readers, level[wave].repeat(edges.reads[wave]))
    return level


def _colours(sums: Sums, is_shared: Ints, level: Ints) -> Ints:
    """Node -> its colour. is_shared: node -> whether several values read it. level: of each sum."""
    colours = np.append(np.minimum(sums.kind, COMPUTED), NONE).astype(np.uint64)
    shared = np.flatnonzero(is_shared)
    colours[shared] = (sums.number[shared].astype(np.uint64) + np.uint64(1)) << np.uint64(20)
    key = sums.template.astype(np.uint64)
    for operands in sums.slots:
        key *= np.uint64(ODD)
        key += colours.take(operands, mode="wrap")
        key = mix(key)
    # The smallest and the largest hash of a term do not depend on how many terms there are.
    least, largest = np.minimum.reduceat(key, sums.first), np.maximum.reduceat(key, sums.first)
    colours[sums.node] = mix((mix(least * np.uint64(ODD) + largest) + level.astype(np.uint64)) * np.uint64(ODD))
    return colours


def mix(key: Any) -> Any:
    """Multiply and shift, in place, as in SplitMix64, so that high bits reach the low ones."""
    key *= np.uint64(0xBF58476D1CE4E5B9)
    key ^= key >> np.uint64(29)
    return key
