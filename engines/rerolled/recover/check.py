"""Check loops, the result of all stages, if CHECKED is set. An error names the first broken rule.

The rules are listed in `loops`; `check_loops` checks those on order, areas and room. It does not compare loops with the
tape; tests compare their results bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Operand, Phase

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


class BrokenLoops(Exception):
    """The result of a stage breaks a rule, which is a bug in that stage. The message names the place and the rule."""


def _refuse(wrong: Any, say: Callable[[int], str]) -> None:
    """Raise BrokenLoops for the first position at which a mask is set, if any."""
    if wrong.any():
        raise BrokenLoops(say(int(wrong.argmax())))


_TARGETS = {Phase.FORWARD: "v", Phase.BACKWARD: "gu", Phase.SINK: "q"}
"""Phase -> the areas that it writes to."""


def check_loops(loops: Loops) -> Loops:
    """Return the loops. Raises BrokenLoops for a place out of range, written twice, or read too early.

    Follows the loops in order, with a mask of the places that are filled so far.
    """
    import numpy as np

    def refuse(places: Ints, wrong: Any, what: str) -> None:
        def say(at: int) -> str:
            area = loops.area_of(int(places[at]))
            return what.format(f"{area.name}[{places[at] - area.start}]")

        _refuse(wrong, say)

    filled, awaits, used, is_room = (np.zeros(loops.workspace, bool) for _ in range(4))
    numbers, parameters = loops.area("k").start, _check_copies(loops)
    filled[: loops.inputs] = filled[numbers : numbers + len(loops.numbers)] = filled[parameters] = True
    awaits[parameters + loops.gradient_offset] = True
    """Place -> whether it is the gradient of a parameter that no sink has added to."""
    used |= filled | awaits
    last = np.zeros(loops.workspace, np.int64)
    """Place -> the last lane of a loop that writes it."""
    phases = [loop.phase for loop in loops.loops]
    if phases != sorted(phases):
        raise BrokenLoops("a loop comes after one of a later phase")
    for at, loop in enumerate(loops.loops):
        where = f"loop {at} ({loop.phase.name.lower()})"
        for number, segment in enumerate(loop.segments):
            for slot, operand in enumerate(segment.operands):
                what = f"{where}: operand {slot} of segment {number}"
                places, _ = _places(loops, what, operand, loop.counts, segment.counts)
                used[places] = True
                refuse(places, ~filled[places], f"{where} reads {{}} before it is written")
        target, area = _places(loops, f"{where}: its target", loop.target, loop.counts)
        if area not in _TARGETS[loop.phase]:
            raise BrokenLoops(f"{where} writes to {area}")
        lanes = np.arange(len(target))
        last[target] = lanes
        if loop.phase == Phase.SINK:
            refuse(target, ~awaits[target], f"{where} adds to {{}}, which no parameter has, or for a second time")
            awaits[target] = False
        refuse(target, filled[target] | (last[target] != lanes), f"{where} writes a second time to {{}}")
        filled[target] = loop.phase != Phase.SINK  # no loop may read the gradients that sinks add to
        used[target] = True
        is_room[_padding(loops, where, loop)] = True
    for index, leaf in enumerate((loops.loss, *loops.outputs)):
        places, _ = _places(loops, f"outputs[{index - 1}]" if index else "the loss", leaf)
        refuse(places, ~filled[places], "the loss or an output reads {} before it is written")
    room = np.flatnonzero(is_room)
    refuse(room, used[room], "a loop has room in {}, which is used")
    return loops


def _places(
    loops: Loops, what: str, operand: Operand, lanes: Sequence[int] = (), terms: Sequence[int] = ()
) -> tuple[Ints, str]:
    """All places of an operand, with repetitions, and the name of the area that contains them."""
    import numpy as np

    if isinstance(operand, float):
        return np.zeros(0, int), ""
    places = operand.places(lanes, terms)
    first, last = int(places.min()), int(places.max())
    if first < 0 or last >= loops.workspace:
        raise BrokenLoops(f"{what} reaches from {first} to {last}, of {loops.workspace} places")
    names = [loops.area_of(place).name for place in (first, last)]
    if names[0] != names[1]:
        raise BrokenLoops(f"{what} reaches from {names[0]} to {names[1]}")
    return places, names[0]


def _check_copies(loops: Loops) -> Ints:
    """Check the copies, and return the places of all parameters."""
    import numpy as np

    indices, places = loops.indices_and_places()
    p = loops.area("p")
    _refuse((places < p.start) | (places >= p.stop), lambda i: f"parameter {indices[i]} is at {places[i]}, not in p")
    _refuse((indices < 0) | (indices >= loops.parameters), lambda i: f"there is no parameter {indices[i]} to copy")
    _refuse(np.bincount(indices)[indices] > 1, lambda i: f"parameter {indices[i]} has a second place")
    _refuse(np.bincount(places)[places] > 1, lambda i: f"parameter {indices[i]} shares its place with another one")
    return places


def _padding(loops: Loops, where: str, loop: Loop) -> Ints:
    """The places beyond its lanes that a loop may write."""
    import numpy as np

    inner = loop.counts[-1] if loop.counts else 1
    if loop.room < inner:
        raise BrokenLoops(f"{where} has room for {loop.room} of {inner} lanes")
    if loop.room == inner:
        return np.zeros(0, int)
    if loop.target.lanes[-1] != 1:
        raise BrokenLoops(f"{where} has room, but its lanes are not contiguous")
    widened = (*loop.counts[:-1], loop.room)
    accesses = [(loop.target, ()), *((o, s.counts) for s in loop.segments for o in s.operands if isinstance(o, Access))]
    if any(access.lanes[-1] == 1 and access.extent(widened, terms)[1] > loops.workspace for access, terms in accesses):
        raise BrokenLoops(f"{where} has room beyond the workspace")
    first = loop.target._replace(base=loop.target.base + inner)
    return first.places((*loop.counts[:-1], loop.room - inner))
