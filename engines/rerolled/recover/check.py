"""Check loops, the result of all stages, if CHECKED is set. An error names the first broken rule.

The rules are listed in `loops`; `check_loops` checks those on areas, order and room. It does not compare loops with the
tape; tests compare their results bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Phase
from zoomgrad.engines.rerolled.recover.sums import Ints


class BrokenLoops(Exception):
    """The result of a stage breaks a rule, which is a bug in that stage. The message names the place and the rule."""


def check_loops(loops: Loops) -> Loops:
    """Return the loops. Raises BrokenLoops for a place out of range, written twice, or read too early.

    Follows the loops in order, with a mask of the places that are filled so far.
    """

    def refuse(places: Ints, wrong: Any, what: str) -> None:
        if wrong.any():
            place = int(places[wrong.argmax()])
            area = loops.area_of(place)
            raise BrokenLoops(f"{what} {area.name}[{place - area.start}]")

    filled, is_room = (np.zeros(loops.workspace, bool) for _ in range(2))
    numbers, inputs, parameters = loops.area("k").start, loops.area("x").start, loops.indices_and_places()[1]
    for filled_at in (slice(numbers, numbers + len(loops.numbers)), slice(inputs, inputs + loops.inputs), parameters):
        filled[filled_at] = True
    used = filled.copy()
    used[parameters + loops.gradient_offset] = True
    written = filled.copy()
    for at, loop in enumerate(loops.loops):
        where = f"loop {at} ({loop.phase.name.lower()})"
        for access, terms in _operands(loop):
            places = _places(loops, where, access, loop.counts, terms)
            used[places] = True
            refuse(places, ~filled[places], f"{where} reads too early:")
        target = _places(loops, where, loop.target, loop.counts)
        is_again = np.bincount(target)[target] > 1
        refuse(target, written[target] | is_again, f"{where} writes a second time to")
        filled[target] = loop.phase != Phase.SINK  # no loop may read the gradients that sinks add to
        written[target] = used[target] = True
        is_room[_padding(loops, where, loop)] = True
    for leaf in (loops.loss, *loops.outputs):
        places = _places(loops, "the loss or an output", leaf)
        refuse(places, ~filled[places], "the loss or an output is read too early:")
    room = np.flatnonzero(is_room)
    refuse(room, used[room], "a loop has room where other numbers are:")
    return loops


def _operands(loop: Loop) -> Iterator[tuple[Access, tuple[int, ...]]]:
    """The operands in the workspace, each with the counts of its segment's terms."""
    return ((operand, loop.segments[number].counts) for number, _, operand in loop.reads())


def _places(loops: Loops, where: str, access: Access, lanes: Sequence[int] = (), terms: Sequence[int] = ()) -> Ints:
    """All places of an access, with repetitions, which must be in one area."""
    first, stop = access.extent(lanes, terms)
    if first < 0 or stop > loops.area_of(first).stop:
        raise BrokenLoops(f"{where} reaches from {first} to {stop}, beyond an area")
    return access.places(lanes, terms)


def _padding(loops: Loops, where: str, loop: Loop) -> Ints:
    """The places beyond its lanes that a loop may write."""
    inner, target = loop.counts[-1] if loop.counts else 1, loop.target
    if loop.room <= inner:
        return np.zeros(0, int)
    if target.lanes[-1] != 1:
        raise BrokenLoops(f"{where} has room, but its lanes are not contiguous")
    widened = (*loop.counts[:-1], loop.room)
    accesses = ((target, ()), *_operands(loop))
    if any(access.lanes[-1] == 1 and access.extent(widened, terms)[1] > loops.workspace for access, terms in accesses):
        raise BrokenLoops(f"{where} has room beyond the workspace")
    return target._replace(base=target.base + inner).places((*loop.counts[:-1], loop.room - inner))
