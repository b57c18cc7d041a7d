"""Rules of the checker of loops, violated once on purpose: the error names the first violation and its place."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.engines.graphs import classifier
from tests.engines.rerolled.rolling import tape_of
from tests.engines.rerolled.tempting import network
from zoomgrad.engines.graph.check import CHECKED
from zoomgrad.engines.rerolled import reroll as stages
from zoomgrad.engines.rerolled.recover.check import BrokenLoops, check_loops
from zoomgrad.engines.rerolled.recover.groups import group
from zoomgrad.engines.rerolled.recover.layout import lay_out
from zoomgrad.engines.rerolled.recover.loops import Access
from zoomgrad.engines.rerolled.reroll import reroll

pytestmark = pytest.mark.host


def tape():
    return tape_of(*classifier(), outputs=[0, 1, 2])


SPOILED = {"group": lambda *given: group(*given)[1:], "lay_out": lambda *given: replace(lay_out(*given), copies=[])}


@pytest.mark.parametrize("stage", SPOILED)
def test_loops_are_checked(monkeypatch, stage):
    """The checks run in tests, and wherever else ZOOMGRAD_CHECK is set."""
    assert CHECKED
    monkeypatch.setattr(stages, stage, SPOILED[stage])
    with pytest.raises(BrokenLoops):
        reroll(tape())


def with_loop(whole, at, **changes):
    return replace(whole, loops=[replace(loop, **changes) if n == at else loop for n, loop in enumerate(whole.loops)])


def with_operand(whole, at, operand):
    first, *rest = whole.loops[at].segments
    first = first._replace(operands=(operand, *first.operands[1:]))
    return with_loop(whole, at, segments=(first, *rest))


BROKEN_LOOPS = {
    r"^loop 0 \(sink\) reads too early: g\[\d+\]": lambda w: replace(w, loops=w.loops[::-1]),
    r"^loop 0 \(forward\) reaches from \d+ to \d+, beyond an area": (
        lambda w: with_operand(w, 0, Access(w.workspace - 1, (1,)))
    ),
    r"^loop 1 \(forward\) writes a second time to v\[0\]": lambda w: with_loop(w, 1, target=w.loops[0].target),
    r"^loop 1 \(forward\) reads too early: v\[\d+\]": lambda w: with_operand(w, 1, w.loops[1].target),
    r"^loop 0 \(forward\) has room, but its lanes are not contiguous": (
        lambda w: with_loop(w, 0, target=w.loops[0].target._replace(lanes=(2,)), room=8)
    ),
}


@pytest.mark.parametrize("message", BROKEN_LOOPS)
def test_broken_loops(message):
    with pytest.raises(BrokenLoops, match=message):
        check_loops(BROKEN_LOOPS[message](reroll(tape())))


def test_lanes_that_list_their_offsets_have_no_room():
    graph, kinds, outputs, *_ = network(random.Random(60008), 3, 9, False)
    check_loops(reroll(tape_of(graph, kinds, outputs)))
