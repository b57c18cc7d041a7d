"""Sums, groups, loops -> the same, or an error that names the first thing broken. Run after each stage, where CHECKED.

What they hold a stage to is order: nothing is read before it is computed, nothing is written twice. That the loops
compute what the tape says is for tests to find out, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engines.graph.expr import Apply, Expr, Leaf
from engines.rerolled.groups import Group, Phase
from engines.rerolled.loops import Access, Loop, Loops, Operand, Table
from engines.rerolled.sums import COMPUTED, CONSTANT, GRADIENT, INPUT, NONE, PARAMETER, SINK, SLOTS, VALUE, Sums

if TYPE_CHECKING:
    from engines.rerolled.sums import Ints


class BrokenLoops(Exception):
    """What a stage made breaks a rule: where, and how. A mistake of that stage."""


def _refuse(wrong: Any, say: Callable[[int], str]) -> None:
    """Raise for the first position of a mask, if there is any; of a row of several for the row."""
    if wrong.any():
        raise BrokenLoops(say(int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())))


# --- sums --------------------------------------------------------------------------------------------------------

_MIRRORED = {VALUE: (NONE,), GRADIENT: (NONE, VALUE), SINK: (PARAMETER,)}
"""Kind of a sum -> the kinds of node whose gradient it may be; a coefficient is nobody's."""


def check_sums(found: Sums) -> Sums:
    """The sums themselves. Raises BrokenLoops: terms, their operands, the order of these, and whose gradient is what."""
    import numpy as np

    owner, template, slots, kind, nodes = found.owner, found.template, found.slots, found.kind, found.nodes

    def term(at: int) -> str:
        return f"term {at} of %{owner[at]}"

    if len({len(owner), len(template), len(slots)}) > 1 or len({nodes, len(found.number), len(found.mirrors)}) > 1:
        raise BrokenLoops("the columns of terms, or those of nodes, differ in length")
    _refuse((owner < 0) | (owner >= nodes), lambda at: f"{term(at)}: there are {nodes} nodes")
    _refuse(np.diff(owner) < 0, lambda at: f"{term(at + 1)} comes after one of %{owner[at]}")
    _refuse((slots < NONE) | (slots >= nodes), lambda at: f"{term(at)}: not all of {slots[at].tolist()} are nodes")
    _refuse(kind[owner] < COMPUTED, lambda at: f"{term(at)}, which is a leaf")
    _refuse((template < 0) | (template >= len(found.templates)), lambda at: f"{term(at)} has no template")
    reads = np.array([[slot in _leaves(expr) for slot in SLOTS] for expr in found.templates])[template]
    _refuse(reads & (slots == NONE), lambda at: f"{term(at)}: its template reads a slot that is empty")
    _refuse(~reads & (slots != NONE), lambda at: f"{term(at)} fills a slot that its template does not read")

    # Operands come first. A coefficient does before all gradients, though it is numbered after them.
    rank = np.arange(nodes) + nodes * (kind > VALUE) + nodes * (found.mirrors != NONE)
    rank = np.append(np.where(kind < COMPUTED, NONE, rank), NONE)  # the last one is NONE's
    late = rank[slots] >= rank[owner][:, None]
    _refuse(late, lambda at: f"{term(at)} reads %{slots[at][late[at]][0]}, which does not come before it")

    is_empty = kind >= COMPUTED
    is_empty[owner] = False
    is_read = np.bincount(slots.ravel() + 1, minlength=nodes + 1)[1:] > 0
    _refuse(is_read & is_empty, lambda node: f"%{node} is read, and has no terms")
    _refuse(is_read & (kind == SINK), lambda node: f"%{node} is read, and a sink")
    for name, root in (("the loss", found.loss), *((f"outputs[{i}]", node) for i, node in enumerate(found.outputs))):
        if not 0 <= root < nodes or kind[root] > VALUE or is_empty[root]:
            raise BrokenLoops(f"{name} is %{root}, which is no value")

    sums = np.unique(owner)
    mirrors = found.mirrors[sums]
    of_kind = np.append(kind, NONE)[mirrors]
    right = [(kind[sums] == of) & np.isin(of_kind, kinds) for of, kinds in _MIRRORED.items()]
    _refuse(~np.any(right, axis=0), lambda at: f"%{sums[at]} can't be the gradient of %{mirrors[at]}")
    several = np.bincount(mirrors + 1, minlength=nodes + 1)[1:] > 1
    _refuse(several, lambda node: f"%{node} has several gradients")

    limits = np.array([found.inputs, found.parameters])[np.minimum(kind, PARAMETER)]
    strange = (kind <= PARAMETER) & ~((found.number >= 0) & (found.number < limits))
    _refuse(strange, lambda node: f"{found.name(node)}: there are only {limits[node]}")
    _refuse((kind == CONSTANT) & ~np.isfinite(found.number), lambda node: f"%{node} is {found.number[node]}")
    return found


# --- groups ------------------------------------------------------------------------------------------------------

_PHASES = {VALUE: Phase.FORWARD, GRADIENT: Phase.BACKWARD, SINK: Phase.SINK}


def check_groups(found: Sums, groups: list[Group]) -> list[Group]:
    """The groups themselves. Raises BrokenLoops: each sum in one of them, lanes that are alike, and an order to run in."""
    import numpy as np

    count = np.bincount(found.owner, minlength=found.nodes)
    first = np.cumsum(count) - count
    in_groups = np.bincount(_joined(group.nodes for group in groups), minlength=found.nodes)
    _refuse((count > 0) & (in_groups == 0), lambda node: f"%{node} is in no group")
    _refuse(in_groups > 1, lambda node: f"%{node} is in groups {in_groups[node]} times")
    group_of = np.full(found.nodes + 1, -1)  # the last one is NONE's
    for at, group in enumerate(groups):
        where, nodes = f"group {at} ({group.phase.name.lower()})", group.nodes
        group_of[nodes] = at
        if at and group.phase < groups[at - 1].phase:
            raise BrokenLoops(f"{where} comes after one of the {groups[at - 1].phase.name.lower()} phase")
        if {_PHASES.get(kind) for kind in found.kind[nodes].tolist()} != {group.phase}:
            raise BrokenLoops(f"{where} has sums of another phase")
        if (group.first != first[nodes]).any() or (count[nodes] != group.terms).any():
            raise BrokenLoops(f"{where} has other terms than its sums")
        templates = found.template[group.first + np.arange(group.terms)[:, None]]
        if (templates != templates[:, :1]).any():
            raise BrokenLoops(f"{where}: its lanes differ in their templates")
    late = group_of[found.slots] >= group_of[found.owner][:, None]

    def reads(at: int) -> str:
        owner, operand = found.owner[at], found.slots[at][late[at]][0]
        return f"group {group_of[owner]}: its %{owner} reads %{operand}, of group {group_of[operand]}"

    _refuse(late, reads)
    return groups


# --- loops -------------------------------------------------------------------------------------------------------

_TARGETS = {Phase.FORWARD: "v", Phase.BACKWARD: "gu", Phase.SINK: "q"}
"""Phase -> the areas that it writes."""


def check_loops(loops: Loops) -> Loops:
    """The loops themselves. Raises BrokenLoops: what is out of reach, written twice, or read before it is written."""
    import numpy as np

    count = len(loops.loops)
    phase = Phase.FORWARD
    reads, targets, beyond = [], [], []
    for at, loop in enumerate(loops.loops):
        where = f"loop {at} ({loop.phase.name.lower()})"
        if loop.phase < phase:
            raise BrokenLoops(f"{where} comes after one of the {phase.name.lower()} phase")
        phase = loop.phase
        _check_shape(where, loop)
        area = _area(loops, f"{where}: its target", loop.target, loop.counts)
        if area not in _TARGETS[phase]:
            raise BrokenLoops(f"{where} writes to {area}")
        targets.append((at, _places(loop.target, loop.counts)))
        beyond.append((at, _beyond(loops, where, loop)))
        for number, segment in enumerate(loop.segments):
            for slot, operand in enumerate(segment.operands):
                _area(loops, f"{where}: operand {slot} of segment {number}", operand, loop.counts, segment.counts)
                reads.append((at, _places(operand, loop.counts, segment.counts)))
    for index, leaf in enumerate((loops.loss, *loops.outputs)):
        _area(loops, f"outputs[{index - 1}]" if index else "the loss", leaf)
        reads.append((count, _places(leaf)))

    def say(loop: int, what: str, place: int) -> str:
        area = loops.area_of(place)
        who = f"loop {loop} ({loops.loops[loop].phase.name.lower()})" if loop < count else "the loss, or an output,"
        return f"{who} {what} {area.name}[{place - area.start}]"

    p, k = loops.area("p"), loops.area("k")
    away = loops.area("q").start - p.start
    copied = _check_copies(loops)
    written = np.zeros(loops.workspace, bool)
    written[copied] = written[: loops.inputs] = written[k.start : k.start + len(loops.numbers)] = True
    used = written.copy()
    used[copied + away] = True

    writer, target = _column(targets)
    _refuse(_repeated(target), lambda i: say(writer[i], "writes a second time to", target[i]))
    is_sink = np.array([loop.phase == Phase.SINK for loop in loops.loops], bool)[writer]
    _refuse(is_sink & ~np.isin(target - away, copied), lambda i: say(writer[i], "adds to what is no gradient:", target[i]))

    since = np.where(written, -1, count + 1)
    since[target[~is_sink]] = writer[~is_sink]  # what sinks add up nobody may read
    reader, place = _column(reads)
    _refuse(since[place] >= reader, lambda i: say(reader[i], "reads before it is written", place[i]))

    used[target] = used[place] = True
    _, outside = _column(beyond)
    ...
    return loops
