"""Every rule of the checkers, violated once on purpose: the error names the first violation and its place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.engines.graphs import classifier
from tests.engines.rerolled.rolling import tape_of
from zoomgrad.engines.graph.passes import CHECKED
from zoomgrad.engines.rerolled import reroll as stages
from zoomgrad.engines.rerolled.recover.chains import chain
from zoomgrad.engines.rerolled.recover.check import BrokenLoops, check_loops, check_sums
from zoomgrad.engines.rerolled.recover.gradients import pull
from zoomgrad.engines.rerolled.recover.groups import group
from zoomgrad.engines.rerolled.recover.layout import lay_out
from zoomgrad.engines.rerolled.recover.loops import Access, Phase
from zoomgrad.engines.rerolled.recover.sums import GRADIENT, NONE, SINK, VALUE
from zoomgrad.engines.rerolled.reroll import reroll

pytestmark = pytest.mark.host


def tape():
    return tape_of(*classifier(), outputs=[0, 1, 2])


def sums():
    return chain(pull(tape()))


def changed(column, at, value):
    """Return a copy of a column with one entry changed."""
    column = column.copy()
    column[at] = value
    return column


SPOILED = {
    "pull": lambda given: replace(pull(given), loss=10**6),
    "chain": lambda found: replace(chain(found), outputs=(-1,)),
    "fuse": lambda found: replace(found, loss=-1),
    "group": lambda *given: group(*given)[1:],
    "lay_out": lambda *given: replace(lay_out(*given), copies=[]),
}


@pytest.mark.parametrize("stage", SPOILED)
def test_every_stage_is_checked(monkeypatch, stage):
    """The checks run in tests, and wherever else ZOOMGRAD_CHECK is set."""
    assert CHECKED
    monkeypatch.setattr(stages, stage, SPOILED[stage])
    with pytest.raises(BrokenLoops):
        reroll(tape())


# --- sums --------------------------------------------------------------------------------------------------------


def of_kind(found, kind):
    """Return the first sum of that kind, and its first term."""
    owners = found.owner
    at = int(np.flatnonzero(found.kind[owners] == kind)[0])
    return int(owners[at]), at


def with_slot(found, term, slot, value):
    return replace(found, slots=changed(found.slots, (slot, term), value))


def reads_itself(found):
    node, term = of_kind(found, VALUE)
    return with_slot(found, term, 0, node)


def value_reads_a_gradient(found):
    gradient, _ = of_kind(found, GRADIENT)
    _, term = of_kind(found, VALUE)
    return with_slot(found, term, 0, gradient)


def second_sink(found):
    sinks = np.unique(found.owner[found.kind[found.owner] == SINK])
    return replace(found, mirrors=changed(found.mirrors, sinks[1], found.mirrors[sinks[0]]))


BROKEN_SUMS = {
    "a slot that is empty": (lambda s: with_slot(s, 4, 0, NONE), r"^term 4 of %\d+: its template reads a slot that"),
    "a sum that reads itself": (reads_itself, r"^term \d+ of %(\d+) reads %\1, which does not come before it"),
    "a value that reads a gradient": (value_reads_a_gradient, r"reads %\d+, which does not come before it"),
    "two sinks of one parameter": (second_sink, r"^%\d+ has several gradients"),
}


@pytest.mark.parametrize("why", BROKEN_SUMS)
def test_broken_sums(why):
    spoil, message = BROKEN_SUMS[why]
    with pytest.raises(BrokenLoops, match=message):
        check_sums(spoil(sums()))


# --- loops -------------------------------------------------------------------------------------------------------


def loops():
    return reroll(tape())


def with_loop(whole, at, **changes):
    return replace(whole, loops=[replace(loop, **changes) if n == at else loop for n, loop in enumerate(whole.loops)])


def moved(access, by):
    return access._replace(base=access.base + by)


def with_operand(whole, at, operand, *, segment=0, slot=0):
    segments = list(whole.loops[at].segments)
    operands = list(segments[segment].operands)
    operands[slot] = operand
    segments[segment] = segments[segment]._replace(operands=tuple(operands))
    return with_loop(whole, at, segments=tuple(segments))


def sink(whole):
    """Return the index of the sink with the most lanes: rows of lanes, without padding."""
    return max((loop.lanes, at) for at, loop in enumerate(whole.loops) if loop.phase == Phase.SINK)[1]


def reads_its_own_target(whole):
    return with_operand(whole, 1, whole.loops[1].target)


BROKEN_LOOPS = {
    "phases out of order": (
        lambda w: replace(w, loops=w.loops[::-1]),
        "^a loop comes after one of a later phase",
    ),
    "an operand beyond the workspace": (
        lambda w: with_operand(w, 0, Access(w.workspace - 1, (1,))),
        r"^loop 0 \(forward\): operand 0 of segment 0 reaches from \d+ to \d+, of \d+ places",
    ),
    "a target written twice": (
        lambda w: with_loop(w, 1, target=w.loops[0].target),
        r"^loop 1 \(forward\) writes a second time to v\[0\]",
    ),
    "a sink of no parameter": (
        lambda w: with_loop(w, sink(w), target=moved(w.loops[sink(w)].target, 1)),
        r"^loop \d+ \(sink\) (adds to|writes a second time to) q\[\d+\]",
    ),
    "a loop that reads its target": (reads_its_own_target, r"^loop 1 \(forward\) reads v\[\d+\] before it is written"),
    "room with gaps between the lanes": (
        lambda w: with_loop(w, 0, target=w.loops[0].target._replace(lanes=(2,)), room=8),
        r"^loop 0 \(forward\) has room, but its lanes are not contiguous",
    ),
    "a parameter in two places": (
        lambda w: replace(w, copies=[*w.copies, w.copies[0]]),
        r"^parameter \d+ has a second place",
    ),
}


@pytest.mark.parametrize("why", BROKEN_LOOPS)
def test_broken_loops(why):
    spoil, message = BROKEN_LOOPS[why]
    with pytest.raises(BrokenLoops, match=message):
        check_loops(spoil(loops()))
