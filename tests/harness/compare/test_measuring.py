"""A comparison in progress: real processes once, then scripted blocks, failing sides, time limits. No durations."""

import random
import sys
from itertools import count
from types import SimpleNamespace

import pytest

from zoomgrad.harness.compare import block
from zoomgrad.harness.compare.block import Failed
from zoomgrad.harness.compare.sides import SIDES, Side
from zoomgrad.harness.compare.turns import Comparison
from zoomgrad.results.compare import RESULT, STEP
from zoomgrad.results.files import Unreadable
from zoomgrad.results.places import ROOT
from zoomgrad.results.record import Cell
from zoomgrad.results.turns import Block

CELLS = tuple(Cell(engine=engine, interpreter="mine", workload="xor") for engine in ("tuple", "tcc"))


MINE = SimpleNamespace(warms_up=False)
"""The interpreter that runs these tests."""


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(block, "environment", lambda host: sys.executable)


def measured(play=block.play, cells=CELLS[:1], checkout=ROOT, strict=("tuple",), until=1000):
    """The verdicts and the comparison of two equal commits."""
    side = Side("a", "1" * 40, {"mine": MINE}, checkout)
    clock = count(0, 3)
    made = Comparison(dict.fromkeys(SIDES, side), cells, strict, 0.02, 3, play, lambda: next(clock))
    list(made.measure(until))
    return [(one.figure, one.word, one.reason) for one in made.verdicts()], made


def scripted(ratio=1.0, bits="b", failing=()):
    """Blocks in which the head takes `ratio` times as long."""
    rng = random.Random(1)

    def play(cell, sides, seed, steps):
        if cell.engine in failing:
            raise Failed("head", f"no {cell.engine} | here")

        def side(factor, bits):
            seconds = [factor * rng.uniform(0.99, 1.01)] * 4
            return {"step_seconds": seconds, "bits": bits}

        return Block.model_validate({"steps": 8, "base": side(1.0, "b"), "head": side(ratio, bits)})

    return play


def test_a_real_block_of_two_processes(monkeypatch):
    monkeypatch.setattr(block, "TURNS", 2)
    _, comparison = measured(cells=CELLS[:1], until=1)
    (played,) = comparison.blocks[CELLS[0]]
    assert played.base.bits == played.head.bits
    assert len(played.base.step_seconds) == len(played.head.step_seconds) > 1
    assert played.layouts > 1


def test_a_comparison_ends_when_everything_is_known():
    found, comparison = measured(scripted(1.05), CELLS)
    assert found == [(STEP, "slower", "")] * 2
    assert all(10 < len(blocks) < 30 for blocks in comparison.blocks.values())
    found, _ = measured(scripted(1.05), until=20)
    assert found == [(STEP, "unsure", "3 blocks")], "the time limit must end it without a verdict"


def test_a_cell_that_fails_on_head_fails_and_stops_no_other():
    found, comparison = measured(scripted(failing=["tcc"]), CELLS)
    assert found == [(RESULT, "lost", "no result on head: no tcc | here"), (STEP, "same", "")]
    assert comparison.blocks[CELLS[0]] and not comparison.blocks[CELLS[1]]


@pytest.mark.parametrize(("steps", "seconds"), [(8, None), (-1, [1.0]), (1, []), (1, [float("nan")]), (1, ["x"])])
def test_a_reply_that_is_out_of_range_is_an_absence(steps, seconds):
    side = {"step_seconds": seconds, "bits": "b"}
    with pytest.raises(Unreadable, match="its figures are out of range"):
        figures = {"steps": steps, "base": side, **({"head": side} if seconds else {})}
        measured(lambda *job: Block.model_validate(figures))


def test_a_commit_that_does_not_build_gives_its_reason(tmp_path):
    (tmp_path / "zoomgrad").mkdir()
    (tmp_path / "zoomgrad/__init__.py").write_text("def broken(:\n")
    with pytest.raises(Unreadable, match=r"no result on base: .*SyntaxError"):
        measured(checkout=tmp_path)
