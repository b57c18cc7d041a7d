"""Check sums and loops. An error names the first broken rule.

The checkers run after each stage if CHECKED is set. The rules for loops are listed in `loops`; `check_loops` checks
those on order, areas, shapes and room. The checkers do not compare loops with the tape; tests compare their results bit
by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from zoomgrad.engines.graph.expr import leaves
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Operand, Phase
from zoomgrad.engines.rerolled.recover.sums import (
    COMPUTED,
    GRADIENT,
    NONE,
    PARAMETER,
    SINK,
    SLOTS,
    VALUE,
    Sums,
)

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


class BrokenLoops(Exception):
    """The result of a stage breaks a rule, which is a bug in that stage. The message names the place and the rule."""


def _refuse(wrong: Any, say: Callable[[int], str]) -> None:
    """Raise BrokenLoops for the first position (or row) at which a mask is set, if any."""
    if wrong.any():
        raise BrokenLoops(say(int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())))


# --- sums --------------------------------------------------------------------------------------------------------

_MIRRORED = {VALUE: (NONE,), GRADIENT: (NONE, VALUE), SINK: (PARAMETER,)}
"""Kind of a sum -> the kinds of node whose gradient it may be. Values and coefficients have NONE."""


def check_sums(sums: Sums) -> Sums:
    """Return the sums. Raises BrokenLoops for wrong terms, operands or mirrors, or a wrong order."""
    import numpy as np

    owner, template, slots, kind, nodes = sums.owner, sums.template, sums.slots.T, sums.kind, sums.nodes

    def term(at: int) -> str:
        return f"term {at} of %{owner[at]}"

    _refuse(np.diff(owner) < 0, lambda at: f"{term(at + 1)} comes after one of %{owner[at]}")
    _refuse((slots < NONE) | (slots >= nodes), lambda at: f"{term(at)}: not all of {slots[at].tolist()} are nodes")
    _refuse(kind[owner] < COMPUTED, lambda at: f"{term(at)}, which is a leaf")
    reads = np.array([[slot in set(leaves(expr)) for slot in SLOTS] for expr in sums.templates])[template]
    _refuse(reads & (slots == NONE), lambda at: f"{term(at)}: its template reads a slot that is empty")
    _refuse(~reads & (slots != NONE), lambda at: f"{term(at)} fills a slot that its template does not read")

    # Operands come before their readers, and coefficients before all gradients, although their numbers are larger.
    rank = np.arange(nodes) + nodes * (kind > VALUE) + nodes * (sums.mirrors != NONE)
    rank = np.append(np.where(kind < COMPUTED, NONE, rank), NONE)  # the last entry is for NONE
    late = rank[slots] >= rank[owner][:, None]
    _refuse(late, lambda at: f"{term(at)} reads %{slots[at][late[at]][0]}, which does not come before it")

    is_empty = kind >= COMPUTED
    is_empty[owner] = False
    is_read = np.bincount(slots.ravel() + 1, minlength=nodes + 1)[1:] > 0
    _refuse(is_read & is_empty, lambda node: f"%{node} is read but has no terms")
    _refuse(is_read & (kind == SINK), lambda node: f"%{node} is read but is a sink")
    for name, root in (("the loss", sums.loss), *((f"outputs[{i}]", node) for i, node in enumerate(sums.outputs))):
        if not 0 <= root < nodes or kind[root] > VALUE or is_empty[root]:
            raise BrokenLoops(f"{name} is %{root}, which is not a value")

    computed, mirrors = sums.node, sums.mirrors[sums.node]
    of_kind = np.append(kind, NONE)[mirrors]
    right = [(kind[computed] == of) & np.isin(of_kind, kinds) for of, kinds in _MIRRORED.items()]
    _refuse(~np.any(right, axis=0), lambda at: f"%{computed[at]} can't be the gradient of %{mirrors[at]}")
    several = np.bincount(mirrors + 1, minlength=nodes + 1)[1:] > 1
    _refuse(several, lambda node: f"%{node} has several gradients")
    return sums


# --- loops -------------------------------------------------------------------------------------------------------

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
        _check_shape(where, loop)
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


def _check_shape(where: str, loop: Loop) -> None:
    """Check counts, numbers of strides, and that each slot has an operand."""
    segments = loop.segments
    counts = [*loop.counts, *(count for segment in segments for count in segment.counts)]
    if not segments or min(counts, default=1) < 1:
        raise BrokenLoops(f"{where} has no lanes, or no terms")

    def fits(operand: Operand, terms: tuple[int, ...]) -> bool:
        return isinstance(operand, float) or (
            (len(operand.lanes), len(operand.terms)) == (len(loop.counts), len(terms))
            and (len(terms) < 2 or all(isinstance(stride, int) for stride in operand.terms))
            and all(
                isinstance(stride, int) or len(stride) == count
                for stride, count in zip((*operand.lanes, *operand.terms), (*loop.counts, *terms))
            )
        )

    if not fits(loop.target, ()):
        raise BrokenLoops(f"{where}: the strides of its target do not match its lane counts")
    for number, (template, terms, operands) in enumerate(segments):
        if set(leaves(template)) != set(SLOTS[: len(operands)]):
            raise BrokenLoops(f"{where}: the operands of segment {number} do not match its template")
        if not all(fits(operand, terms) for operand in operands):
            raise BrokenLoops(f"{where}: segment {number} has an operand whose strides do not match its counts")


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
