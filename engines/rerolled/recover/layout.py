"""Groups -> Loops: choose a place for every node, and write the groups as loops over these places.

`loops` lists what this stage guarantees to rearrangements and back ends.

All nodes have places in one workspace of doubles, which is divided into areas:

- `k`: constants. Equal ones share a place.
- `p`: parameters, in the order of the widest forward loop that reads them: term by term, the lanes of a term side by
  side. For a layer this is the transposed weight matrix.
- `q`: their gradients, each at a fixed distance from its parameter.
- `x`: inputs, in the caller's order.
- `v`: values, loop by loop, with lanes side by side.
- `g`: their gradients, each at a fixed distance from its value.
- `u`: the other sums of the backward pass: coefficients, and gradients of values that have no place.

A group becomes one loop under two conditions: its lanes take the same steps from term to term, so that one nest of
terms serves all lanes, and the places of its first terms form one nest of lanes. `lanes` divides other groups, lists
the offsets of an operand whose places would need many nests, or starts a segment where lanes differ in a step.

Example, continued from `groups`. The sums of the group %8, %16 are

    p0 + p1 * x0 + p2 * x1
    p3 + p4 * x0 + p5 * x1

It is the only forward group that reads parameters. Their order is p0 p3, p1 p4, p2 p5, starting at place 8. A copy
maps these places to the caller's parameters:

    >>> loops = lay_out(fuse(chain(pull(tape))), group(fuse(chain(pull(tape)))))
    >>> for area in loops.areas:
    ...     print(*area)
    k 0 8
    p 8 16
    q 16 24
    x 24 32
    v 32 40
    g 40 48
    u 48 56
    >>> [copy] = loops.copies
    >>> copy.counts, copy.place, copy.entry
    ((3, 2), Access(base=8, lanes=(2, 1), terms=()), Access(base=0, lanes=(1, 3), terms=()))

From the second term to the third, both lanes step by 2 in `p` and by 1 in `x`. The first term has another template, so
it is a separate segment:

    >>> first, second = loops.loops[0].segments
    >>> first.counts, first.operands
    ((), (Access(base=8, lanes=(1,), terms=()),))
    >>> second.counts, second.operands
    ((2,), (Access(base=10, lanes=(1,), terms=(2,)), Access(base=24, lanes=(0,), terms=(1,))))

In the text form, with places counted from the start of their area, this is

    for i<2: v[i] = p[i] + sum(t<2: p[2 + i + 2*t] * x[t])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Optional, Union

import numpy as np

from zoomgrad.engines.rerolled.recover.groups import Group
from zoomgrad.engines.rerolled.recover.lanes import Lanes, nests_of_lanes, nests_of_terms, parts
from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Loop, Loops, Phase, Segment
from zoomgrad.engines.rerolled.recover.nest import Nest
from zoomgrad.engines.rerolled.recover.places import (
    WRITTEN_SINGLY,
    Places,
    ascending,
    copies_of,
    padded,
    plan_chains,
    put_parameters,
    put_parameters_as,
)
from zoomgrad.engines.rerolled.recover.sums import APART, INPUT, NONE, PARAMETER, Ints, Sums


def lay_out(sums: Sums, groups: Sequence[Group], like: Optional[Loops] = None) -> Loops:
    """Give every node a place in one workspace, and write the groups as loops over it.

    like: loops whose places the parameters take. Raises Unlike if they can't.
    """
    forward = [group for group in groups if group.phase == Phase.FORWARD]
    others = [group for group in groups if group.phase != Phase.FORWARD]
    places = Places(sums)
    if like is None:
        put_parameters(sums, forward, places)
    else:
        put_parameters_as(like, sums, places)
    places.close("p")
    places.close("q", like="p")
    inputs = np.flatnonzero(sums.kind == INPUT)
    places.of[inputs] = places.block(sums.inputs) + sums.number[inputs]
    places.close("x")
    writer = _Writer(sums, places, plan_chains(sums, forward, places))
    loops = [loop for group in forward for loop in writer.loops(group)]
    places.close("v")
    places.close("g", like="v")
    writer.go_back()
    loops += [loop for group in others for loop in writer.loops(group)]
    places.end += VECTOR  # the last vector may reach beyond the last block
    places.close("u")
    of_parameters = np.flatnonzero(sums.kind == PARAMETER)
    of_parameters = of_parameters[ascending(places.of[of_parameters])]
    return Loops(
        loops=loops,
        areas=tuple(places.areas.values()),
        numbers=places.numbers,
        copies=copies_of(places.of[of_parameters], sums.number[of_parameters].astype(np.int32)),
        output_copies=copies_of(places.of[list(sums.outputs)], np.arange(len(sums.outputs))),
        loss=places.access(sums.loss),
        outputs=tuple(map(places.access, sums.outputs)),
        inputs=sums.inputs,
        parameters=sums.parameters,
    )


class _Writer:
    """Writes groups as loops, and places their sums."""

    def __init__(self, sums: Sums, places: Places, targets: Ints) -> None:
        self.sums = sums
        self.places = places
        self.targets = targets
        """Node -> the place of its sum, if that is known before its loop is written, else NONE."""
        self.is_occupied = np.zeros(0, bool)
        """Place -> whether it holds a leaf, a value or a gradient. Empty during the forward pass."""
        self.row = np.zeros(sums.nodes + 1, np.int64)
        """Node -> its block and row, if the loop that computes it is one of several with rows of different lengths."""
        self.blocks = 0
        """The number of such loops so far."""

    def go_back(self) -> None:
        """Go on with the backward pass: the gradients of parameters and values have places."""
        mirrors, gradients = self.sums.mirrors, self.places.gradients()
        self.is_occupied = np.zeros(self.places.end, bool)
        for places in (self.places.of, gradients):
            self.is_occupied[places[places != NONE]] = True
        first = self.places.areas["x"].start  # also inputs that no sum reads, because training gives all back
        self.is_occupied[first : first + self.sums.inputs] = True
        self.targets = np.append(np.where(mirrors == NONE, NONE, gradients[mirrors]), NONE)

    def loops(self, group: Group) -> Iterator[Loop]:
        """Write a group as loops, usually one."""
        if len(group.nodes) == 1 and group.terms <= WRITTEN_SINGLY:
            yield self._single(group)
            return
        stops = np.array([area.stop for area in self.places.areas.values()])
        lanes, ends = parts(self._lanes(group), stops)
        for part in lanes:
            yield from self._of_lanes(group.phase, part, ends)

    def _single(self, group: Group) -> Loop:
        """A loop for one sum of a few terms. A fast path, because half of a network's groups are like this."""
        sums, places = self.sums, self.places
        node, first = int(group.nodes[0]), int(group.first[0])
        target = int(self.targets[node])
        places.of[node] = places.block(1) if target == NONE else target
        segments = []
        for term in range(first, first + group.terms):
            nodes = sums.slots[:, term].tolist()
            operands = tuple(places.operand(places.access(operand)) for operand in nodes if operand != NONE)
            segments.append(Segment(sums.templates[sums.template[term]], (), operands))
        return Loop(group.phase, (), places.access(node), 1, tuple(segments))

    def _lanes(self, group: Group) -> Lanes:
        """The lanes of a group in the order of their targets, with the places of all operands."""
        targets, mirrors = self.targets.take(group.nodes), self.sums.mirrors.take(group.nodes)
        are_known = not (targets == NONE).any()
        order: Union[Ints, slice] = slice(None)
        if mirrors[0] != NONE:
            order = ascending(targets) if are_known else mirrors.argsort()
        terms = group.first[order] + np.arange(group.terms)[:, None]
        nodes = self.sums.operands(terms)
        rows = (self.row.take(of_slot[0]) for of_slot in nodes) if self.blocks else ()
        return Lanes(
            nodes=group.nodes[order],
            targets=targets[order] if are_known else None,
            row=next((row for row in rows if row.any()), None),
            template=self.sums.template.take(terms[:, 0]),
            places=self.places.of.take(nodes, mode="wrap"),
        )

    def _of_lanes(self, phase: Phase, lanes: Lanes, ends: Ints) -> Iterator[Loop]:
        """Write these lanes as loops, usually one. ends: the terms after which a segment ends."""
        terms = nests_of_terms(lanes, ends)
        numbers = lanes.template[[nest.start for nest in terms]].tolist()
        sequences = [
            lanes.places[slot, nest.start] for nest, number in zip(terms, numbers) for slot in self.sums.reads[number]
        ]
        pieces, longest = nests_of_lanes(lanes, sequences)
        for piece in pieces:
            members = slice(piece.start, piece.start + piece.size)
            if longest:
                self.blocks += 1
                self.row[lanes.nodes[members]] = self.blocks * APART + np.arange(piece.size) // piece.counts[-1]
            if lanes.targets is None:
                target, room = self._new_target(lanes.nodes[members], piece.counts, longest)
            else:
                target, room = self._known_target(lanes.nodes[members], piece, lanes.targets[members], longest)
            segments = tuple(self._segments(lanes, terms, numbers, piece))
            yield Loop(phase=phase, counts=piece.counts, target=target, room=room, segments=segments)

    def _segments(self, lanes: Lanes, terms: Sequence[Nest], numbers: Sequence[int], piece: Nest) -> Iterator[Segment]:
        """Write all terms of a piece of the lanes. numbers: for each nest of terms, the number of its template."""
        sequence = count(0 if lanes.targets is None else 1)
        for nest, number in zip(terms, numbers):
            operands = []
            for slot in self.sums.reads[number]:
                first = int(lanes.places[slot, nest.start, piece.start])
                access = Access(first, piece.strides_of(next(sequence)), nest.strides_of(slot))
                operands.append(self.places.operand(access))
            yield Segment(self.sums.templates[number], nest.counts, tuple(operands))

    def _new_target(self, nodes: Ints, counts: tuple[int, ...], longest: int) -> tuple[Access, int]:
        """Places for these sums in a new block, and the number of inner lanes that have room there.

        longest: the most inner lanes of a row, for rows that are as far apart as those of other loops.
        """
        inner = counts[-1] if counts else 1
        width = padded(max(inner, longest))
        steps, size = [int(inner > 1)] if counts else [], width  # a count of 1 has no step
        for outer in counts[-2::-1]:
            steps.insert(0, size)
            size *= outer
        target = Access(self.places.block(size), tuple(steps))
        self.places.of[nodes] = target.places(counts)
        return target, width if inner > 1 else 1

    def _known_target(self, nodes: Ints, piece: Nest, targets: Ints, longest: int) -> tuple[Access, int]:
        """The known places of these sums, and the number of inner lanes that have room there."""
        if self.blocks:
            self.row[nodes] = self.row[self.sums.mirrors[nodes]]
        self.places.of[nodes] = targets
        target = Access(int(targets[0]), piece.strides_of(0))
        inner = piece.counts[-1] if piece.counts else 1
        spare = padded(max(inner, longest)) - inner
        if target.lanes[-1:] != (1,) or not len(self.is_occupied) or not spare:
            return target, inner
        beyond: Any = targets[inner - 1 :: inner, None] + np.arange(1, spare + 1)
        is_free = beyond.max() < len(self.is_occupied) and not self.is_occupied[beyond].any()
        return target, inner + spare if is_free else inner
