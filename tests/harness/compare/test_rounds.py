"""A comparison in progress: real processes once, then a scripted play, failing sides, time limits. No durations."""

import contextlib
import random
import sys
from datetime import UTC, datetime
from itertools import count

import pytest

from zoomgrad.harness.compare import layout, rounds
from zoomgrad.harness.compare.rounds import Comparison, Place
from zoomgrad.harness.compare.turns import Plan, Subject
from zoomgrad.results.compare import RESULT, STEP
from zoomgrad.results.files import Unreadable
from zoomgrad.results.places import ROOT
from zoomgrad.results.record import Cell

CELLS = tuple(Cell(engine=engine, interpreter="mine", workload="xor") for engine in ("tuple", "tcc"))


def planned(cells=CELLS[:1], **changes):
    commit = Subject(name="a", sha="1" * 40)
    fields = {"within": 0.02, "budget_seconds": 1000, "seed": 3, "figures": (STEP,), "strict": ("tuple",), **changes}
    return Plan(id="d", created_at=datetime.now(UTC), command=(), base=commit, head=commit, cells=cells, **fields)


def comparison(play=rounds.play, cells=CELLS[:1], places=ROOT, **changes):
    plan = planned(cells, **changes)
    sides = dict.fromkeys(("base", "head"), Place(places, {"mine": (sys.executable, False)}))
    clock = count(0, 3)
    return Comparison(
        plan, sides, lambda line, found: None, play=play, clock=lambda: next(clock), until=plan.budget_seconds
    )


def scripted(ratio=1.0, bits="b", failing=()):
    """A play in which the head takes `ratio` times as long."""
    rng = random.Random(1)

    def play(job, limits):
        engine = job["sides"]["head"]["engine"]
        assert job["sides"]["base"]["layout"] == job["sides"]["head"]["layout"]
        if engine in failing:
            return {"failed": f"no {engine} | here", "side": "head"}

        def side(factor, bits):
            seconds = [factor * rng.uniform(0.99, 1.01)] * 4
            return {"step_seconds": seconds, "processor_seconds": seconds, "waits": 0, "bits": bits}

        return {"steps": 8, "base": side(1.0, "b"), "head": side(ratio, bits)}

    return play


def words(done):
    return [(one.figure, one.word) for one in done.verdicts()]


@pytest.fixture
def uncompiled(monkeypatch):
    """No compiler makes paddings, which no scripted play links."""
    monkeypatch.setattr(layout, "padding", lambda size: contextlib.nullcontext())


def test_a_real_block_of_two_processes(monkeypatch):
    monkeypatch.setattr("zoomgrad.harness.compare.block.TURNS", 2)
    done = comparison(budget_seconds=1)
    done.measure()
    assert not done.absences
    (block,) = done.blocks
    assert block.base.bits == block.head.bits
    assert len(block.base.step_seconds) == len(block.head.processor_seconds) > 1
    assert block.layouts > 1


def test_a_comparison_ends_when_everything_is_known(uncompiled):
    done = comparison(scripted(1.05), CELLS)
    done.measure()
    assert words(done) == [(STEP, "slower")] * 3
    assert 10 < len(done.blocks) < 60


def test_the_time_limit_ends_a_comparison_without_a_verdict(uncompiled):
    done = comparison(scripted(1.05), budget_seconds=20)
    done.measure()
    assert words(done) == [(STEP, "unsure")]


def test_a_cell_that_fails_on_head_fails_and_stops_no_other(uncompiled):
    done = comparison(scripted(failing=["tcc"]), CELLS)
    done.measure()
    (lost,) = [one for one in done.verdicts() if one.fails]
    assert (lost.subject, lost.figure, lost.word) == ("tcc/mine/xor", RESULT, "lost")
    assert "no tcc | here" in lost.reason
    assert {block.cell for block in done.blocks} == {CELLS[0]}


def test_other_bits_fail_if_the_engine_promises_them(uncompiled):
    for strict, expected in ((("tuple",), [(RESULT, "wrong"), (STEP, "same")]), ((), [(STEP, "same")])):
        done = comparison(scripted(bits="c"), strict=strict)
        done.measure()
        assert words(done) == expected


@pytest.mark.parametrize(
    ("steps", "seconds"), [(8, None), (-1, [1.0]), (1, []), (1, [0.0]), (1, [float("nan")]), (1, ["x"])]
)
def test_a_reply_that_is_out_of_range_is_an_absence(steps, seconds, uncompiled):
    side = {"step_seconds": seconds, "bits": "b"}
    done = comparison(lambda job, limits: {"steps": steps, **({"base": side, "head": side} if seconds else {})})
    with pytest.raises(Unreadable, match="its figures are out of range"):
        done.measure()
    assert words(done) == [(RESULT, "lost")]


def test_a_commit_that_does_not_build_gives_its_reason(tmp_path):
    (tmp_path / "zoomgrad").mkdir()
    (tmp_path / "zoomgrad/__init__.py").write_text("def broken(:\n")
    with pytest.raises(Unreadable, match="SyntaxError"):
        comparison(places=tmp_path).measure()
