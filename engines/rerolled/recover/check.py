"""Check sums, groups and loops. An error names the first broken rule.

The checkers run after each stage if CHECKED is set. Most rules are about order: nothing is read before it is computed,
and nothing is written twice. The checkers do not compare loops with the tape; tests compare their results bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from zoomgrad.engines.rerolled.recover.groups import Group, Phase
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Loops, Operand, Table
from zoomgrad.engines.rerolled.recover.sums import (
    COMPUTED,
    CONSTANT,
    GRADIENT,
    NONE,
    PARAMETER,
    SINK,
    SLOTS,
    VALUE,
    Sums,
    leaves,
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


def check_sums(form: Sums) -> Sums:
    """Return the sums. Raises BrokenLoops for wrong terms, operands, mirrors or leaves, or a wrong order."""
    import numpy as np

    owner, template, slots, kind, nodes = form.owner, form.template, form.slots.T, form.kind, form.nodes

    def term(at: int) -> str:
        return f"term {at} of %{owner[at]}"

    if len({len(owner), len(template), len(slots)}) > 1 or nodes != len(form.mirrors):
        raise BrokenLoops("the columns of terms, or those of nodes, differ in length")
    _refuse((owner < 0) | (owner >= nodes), lambda at: f"{term(at)}: there are {nodes} nodes")
    _refuse(np.diff(owner) < 0, lambda at: f"{term(at + 1)} comes after one of %{owner[at]}")
    _refuse((slots < NONE) | (slots >= nodes), lambda at: f"{term(at)}: not all of {slots[at].tolist()} are nodes")
    _refuse(kind[owner] < COMPUTED, lambda at: f"{term(at)}, which is a leaf")
    _refuse((template < 0) | (template >= len(form.templates)), lambda at: f"{term(at)} has no template")
    reads = np.array([[slot in set(leaves(expr)) for slot in SLOTS] for expr in form.templates])[template]
    _refuse(reads & (slots == NONE), lambda at: f"{term(at)}: its template reads a slot that is empty")
    _refuse(~reads & (slots != NONE), lambda at: f"{term(at)} fills a slot that its template does not read")

    # Operands come before their readers, and coefficients before all gradients, although their numbers are larger.
    rank = np.arange(nodes) + nodes * (kind > VALUE) + nodes * (form.mirrors != NONE)
    rank = np.append(np.where(kind < COMPUTED, NONE, rank), NONE)  # the last entry is for NONE
    late = rank[slots] >= rank[owner][:, None]
    _refuse(late, lambda at: f"{term(at)} reads %{slots[at][late[at]][0]}, which does not come before it")

    is_empty = kind >= COMPUTED
    is_empty[owner] = False
    is_read = np.bincount(slots.ravel() + 1, minlength=nodes + 1)[1:] > 0
    _refuse(is_read & is_empty, lambda node: f"%{node} is read but has no terms")
    _refuse(is_read & (kind == SINK), lambda node: f"%{node} is read but is a sink")
    for name, root in (("the loss", form.loss), *((f"outputs[{i}]", node) for i, node in enumerate(form.outputs))):
        if not 0 <= root < nodes or kind[root] > VALUE or is_empty[root]:
            raise BrokenLoops(f"{name} is %{root}, which is not a value")

    sums = np.unique(owner)
    mirrors = form.mirrors[sums]
    of_kind = np.append(kind, NONE)[mirrors]
    right = [(kind[sums] == of) & np.isin(of_kind, kinds) for of, kinds in _MIRRORED.items()]
    _refuse(~np.any(right, axis=0), lambda at: f"%{sums[at]} can't be the gradient of %{mirrors[at]}")
    several = np.bincount(mirrors + 1, minlength=nodes + 1)[1:] > 1
    _refuse(several, lambda node: f"%{node} has several gradients")

    numbered = len(form.number)
    _refuse(kind[numbered:] <= CONSTANT, lambda at: f"%{numbered + at} is a leaf without a number")
    kind = kind[:numbered]
    limits = np.array([form.inputs, form.parameters])[np.minimum(kind, PARAMETER)]
    strange = (kind <= PARAMETER) & ~((form.number >= 0) & (form.number < limits))
    _refuse(strange, lambda node: f"{form.name(node)}: there are only {limits[node]}")
    _refuse((kind == CONSTANT) & ~np.isfinite(form.number), lambda node: f"%{node} is {form.number[node]}")
    return form


# --- groups ------------------------------------------------------------------------------------------------------

_PHASES = {VALUE: Phase.FORWARD, GRADIENT: Phase.BACKWARD, SINK: Phase.SINK}


def check_groups(sums: Sums, groups: list[Group]) -> list[Group]:
    """Return the groups. Raises BrokenLoops for a sum in no group or several, lanes that differ, or a wrong order."""
    import numpy as np

    count = np.bincount(sums.owner, minlength=sums.nodes)
    first = np.cumsum(count) - count
    in_groups = np.bincount(_joined(group.nodes for group in groups), minlength=sums.nodes)
    _refuse((count > 0) & (in_groups == 0), lambda node: f"%{node} is in no group")
    _refuse(in_groups > 1, lambda node: f"%{node} is in groups {in_groups[node]} times")
    group_of = np.full(sums.nodes + 1, -1)  # the last entry is for NONE
    for at, group in enumerate(groups):
        where, nodes = f"group {at} ({group.phase.name.lower()})", group.nodes
        group_of[nodes] = at
        if at and group.phase < groups[at - 1].phase:
            raise BrokenLoops(f"{where} comes after one of the {groups[at - 1].phase.name.lower()} phase")
        if {_PHASES.get(kind) for kind in sums.kind[nodes].tolist()} != {group.phase}:
            raise BrokenLoops(f"{where} has sums of another phase")
        if (group.first != first[nodes]).any() or (count[nodes] != group.terms).any():
            raise BrokenLoops(f"{where}: its terms are not those of its sums")
        templates = sums.template[group.first + np.arange(group.terms)[:, None]]
        if (templates != templates[:, :1]).any():
            raise BrokenLoops(f"{where}: its lanes differ in their templates")
    late = group_of[sums.slots.T] >= group_of[sums.owner][:, None]

    def reads(at: int) -> str:
        owner, operand = sums.owner[at], sums.slots[:, at][late[at]][0]
        return f"group {group_of[owner]}: its %{owner} reads %{operand}, of group {group_of[operand]}"

    _refuse(late, reads)
    return groups


# --- loops -------------------------------------------------------------------------------------------------------

_TARGETS = {Phase.FORWARD: "v", Phase.BACKWARD: "gu", Phase.SINK: "q"}
"""Phase -> the areas that it writes to."""


def check_loops(loops: Loops) -> Loops:
    """Return the loops. Raises BrokenLoops for a place out of range, written twice, or read too early."""
    import numpy as np

    last = len(loops.loops)

    def who(at: int) -> str:
        return f"loop {at} ({loops.loops[at].phase.name.lower()})" if at < last else "the loss or an output"

    def says(at: int, what: str, place: int) -> str:
        area = loops.area_of(place)
        return f"{who(at)} {what.format(f'{area.name}[{place - area.start}]')}"

    written, read, beyond = [], [], []
    for at, loop in enumerate(loops.loops):
        if at and loop.phase < loops.loops[at - 1].phase:
            raise BrokenLoops(f"{who(at)} comes after {who(at - 1)}")
        _check_shape(who(at), loop)
        area = _check_reach(loops, f"{who(at)}: its target", loop.target, loop.counts)
        if area not in _TARGETS[loop.phase]:
            raise BrokenLoops(f"{who(at)} writes to {area}")
        written.append((at, _places(loop.target, loop.counts, each=True)))
        beyond.append((at, _beyond(loops, who(at), loop)))
        for number, segment in enumerate(loop.segments):
            for slot, operand in enumerate(segment.operands):
                what = f"{who(at)}: operand {slot} of segment {number}"
                _check_reach(loops, what, operand, loop.counts, segment.counts)
                read.append((at, _places(operand, loop.counts, segment.counts)))
    for index, leaf in enumerate((loops.loss, *loops.outputs)):
        _check_reach(loops, f"outputs[{index - 1}]" if index else "the loss", leaf)
        read.append((last, _places(leaf)))

    numbers, away = loops.area("k").start, loops.gradient_offset
    parameters = _check_copies(loops)
    since = np.full(loops.workspace, last + 1)
    """Place -> the loop that writes it, or -1 if it is filled before all loops."""
    since[: loops.inputs] = since[numbers : numbers + len(loops.numbers)] = since[parameters] = -1
    used = since < 0
    used[parameters + away] = True

    writer, target = _columns(written)
    adds = np.array([loop.phase == Phase.SINK for loop in loops.loops], bool)[writer]
    _refuse(_repeated(target), lambda i: says(writer[i], "writes a second time to {}", target[i]))
    _refuse(adds & ~used[target], lambda i: says(writer[i], "adds to {}, which no parameter has", target[i]))
    since[target[~adds]] = writer[~adds]  # without sinks, because no loop may read the gradients that they add to
    reader, place = _columns(read)
    _refuse(since[place] >= reader, lambda i: says(reader[i], "reads {} before it is written", place[i]))
    used[target] = used[place] = True
    writer, room = _columns(beyond)
    _refuse(used[room], lambda i: says(writer[i], "has room in {}, which is used", room[i]))
    return loops


def _check_shape(where: str, loop: Loop) -> None:
    """Check counts, numbers of strides, and that each slot has an operand."""
    segments = loop.segments
    counts = [*loop.counts, *(count for segment in segments for count in segment.counts)]
    if not segments or min(counts, default=1) < 1:
        raise BrokenLoops(f"{where} has no lanes, or no terms")

    def fits(operand: Operand, terms: tuple[int, ...]) -> bool:
        if isinstance(operand, Table):
            return operand.places.shape == (loop.lanes, math.prod(terms))
        return isinstance(operand, float) or (
            (len(operand.lanes), len(operand.terms)) == (len(loop.counts), len(terms))
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


def _check_reach(
    loops: Loops, what: str, operand: Operand, lanes: Sequence[int] = (), terms: Sequence[int] = ()
) -> str:
    """Return the name of the area that contains all places of an operand."""
    if isinstance(operand, float):
        return ""
    if isinstance(operand, Table):
        first, last = int(operand.places.min()), int(operand.places.max())
    else:
        first, last = operand.extent(lanes, terms)
        last -= 1
    if first < 0 or last >= loops.workspace:
        raise BrokenLoops(f"{what} reaches from {first} to {last}, of {loops.workspace} places")
    names = [loops.area_of(place).name for place in (first, last)]
    if names[0] != names[1]:
        raise BrokenLoops(f"{what} reaches from {names[0]} to {names[1]}")
    return names[0]


def _check_copies(loops: Loops) -> Ints:
    """Check the copies, and return the places of all parameters."""
    places = _joined(_places(copy.place, copy.counts, each=True) for copy in loops.copies)
    indices = _joined(_places(copy.parameter, copy.counts, each=True) for copy in loops.copies)
    p = loops.area("p")
    _refuse((places < p.start) | (places >= p.stop), lambda i: f"parameter {indices[i]} is at {places[i]}, not in p")
    _refuse((indices < 0) | (indices >= loops.parameters), lambda i: f"there is no parameter {indices[i]} to copy")
    _refuse(_repeated(indices), lambda i: f"parameter {indices[i]} has a second place")
    _refuse(_repeated(places), lambda i: f"parameter {indices[i]} shares its place with another one")
    return places


def _beyond(loops: Loops, where: str, loop: Loop) -> Ints:
    """The padding that a loop may write beyond its lanes, as places."""
    inner = loop.counts[-1] if loop.counts else 1
    if loop.room < inner:
        raise BrokenLoops(f"{where} has room for {loop.room} of {inner} lanes")
    if loop.room == inner:
        return _joined(())
    if loop.target.lanes[-1] != 1:
        raise BrokenLoops(f"{where} has room, but its lanes are not contiguous")
    widened = (*loop.counts[:-1], loop.room)
    accesses = [(loop.target, ()), *((o, s.counts) for s in loop.segments for o in s.operands if isinstance(o, Access))]
    if any(access.lanes[-1] == 1 and access.extent(widened, terms)[1] > loops.workspace for access, terms in accesses):
        raise BrokenLoops(f"{where} has room beyond the workspace")
    first = loop.target._replace(base=loop.target.base + inner)
    return _places(first, (*loop.counts[:-1], loop.room - inner))


# --- shared by the checkers -------------------------------------------------------------------------------------------


def _places(operand: Operand, lanes: Sequence[int] = (), terms: Sequence[int] = (), *, each: bool = False) -> Ints:
    """All places of an operand. each: repeat a place for every lane and term that has it."""
    import numpy as np

    if isinstance(operand, float):
        return _joined(())
    if isinstance(operand, Table):
        return operand.places.reshape(-1)
    places = np.array([operand.base])
    for count, stride in zip((*lanes, *terms), (*operand.lanes, *operand.terms)):
        if stride or each:
            places = (places[:, None] + (stride * np.arange(count) if isinstance(stride, int) else stride)).reshape(-1)
    return places


def _joined(parts: Iterable[Ints]) -> Ints:
    import numpy as np

    return np.concatenate([np.zeros(0, np.int64), *parts])


def _columns(parts: Sequence[tuple[int, Ints]]) -> tuple[Ints, Ints]:
    """Concatenate the parts: the loop of each place, and the places."""
    import numpy as np

    loops, places = zip(*parts) if parts else ((), ())
    return np.repeat(np.array(loops, int), [len(part) for part in places]), _joined(places)


def _repeated(numbers: Ints) -> Any:
    """A mask of the numbers that occurred earlier."""
    import numpy as np

    wrong = np.ones(len(numbers), bool)
    wrong[np.unique(numbers, return_index=True)[1]] = False
    return wrong
