"""Blocks in turns -> verdicts: each word, the clock that counts, and the family that shares an error."""

import itertools
import math
import random

import pytest

from zoomgrad.harness.compare.sides import SIDES, Side
from zoomgrad.harness.compare.turns import Comparison
from zoomgrad.results.compare import COMPILE_TIME, RESULT, STEP
from zoomgrad.results.record import Cell
from zoomgrad.results.turns import Block, Figures

CELLS = tuple(Cell(engine=engine, interpreter="cpython-3.13", workload="xor") for engine in ("tcc", "gcc-O1"))


def shown(blocks, *cells, sha="0" * 40):
    """A comparison of these cells, by default the first, that has the first one's blocks."""
    sides = dict.fromkeys(SIDES, Side("HEAD", sha))
    made = Comparison(sides, cells or CELLS[:1], ("tcc",), 0.02, 1)
    made.blocks[CELLS[0]] += blocks
    return made


def side(seconds, compiled=0.0, bits="same"):
    return Figures(step_seconds=(seconds,) * 3, compile_seconds=(compiled,), bits=bits)


def blocks(ratios, base_compiled=0.0, **changes):
    """Blocks on a machine that gets slower and slower, so that only the ratio within a block means something."""
    return [
        Block(steps=8, base=side(1.0 + number, base_compiled), head=side((1.0 + number) * ratio, **changes))
        for number, ratio in enumerate(ratios)
    ]


def around(ratio, spread=0.01, count=40, seed=0):
    rng = random.Random(seed)
    return [ratio * math.exp(rng.gauss(0.0, spread)) for _ in range(count)]


def words(found):
    return [(one.figure, one.word) for one in found]


@pytest.mark.parametrize(("ratio", "word"), [(1.05, "slower"), (0.95, "faster"), (1.005, "same")])
def test_a_verdict_follows_from_the_whole_interval(ratio, word):
    disturbed = [0.2, 0.3]  # which hides nothing
    (found,) = shown(blocks([*around(ratio), *disturbed])).verdicts()
    assert found.word == word
    assert found.ratio.low <= found.ratio.value <= found.ratio.high


def test_each_pair_of_layouts_has_one_vote():
    (block,) = blocks([1.0])
    # Layouts 0 and 1 in turns: the head is 4 % slower in the first and 2 % faster in the second, but for one burst.
    head = block.head.model_copy(update={"step_seconds": (1.04, 0.98, 9.0, 0.98, 1.04, 0.98)})
    base = block.base.model_copy(update={"step_seconds": (1.0,) * 6})
    found = block.model_copy(update={"base": base, "head": head, "layouts": 2}).log_ratio(STEP)
    assert found == pytest.approx((math.log(1.04) + math.log(0.98)) / 2)


@pytest.mark.parametrize(("compiled", "word"), [(0.0, None), (1.04, "same"), (1.1, "slower")])
def test_compile_times_may_differ_by_more(compiled, word):
    made = blocks([1.0] * 40, base_compiled=min(compiled, 1.0), compiled=compiled)
    assert words(shown(made).verdicts()) == [(STEP, "same"), *([(COMPILE_TIME, word)] if word else [])]


def test_all_figures_of_all_cells_share_the_error():
    agreeing, other = blocks([1.05] * 13), CELLS[0].model_copy(update={"workload": "tour"})
    assert (shown([]).family, shown([], *CELLS).family) == (2, 4)
    assert words(shown(agreeing).verdicts()) == [(STEP, "slower")]
    assert words(shown(agreeing, *CELLS, other).verdicts()) == [(STEP, "unsure")]


def test_only_cells_without_a_verdict_are_measured_again():
    ratios = {CELLS[0]: [1.1] * 99, CELLS[1]: [3.0, 1 / 3.0] * 99}
    played = []

    def play(cell, sides, seed, steps):
        played.append(cell)
        return blocks([ratios[cell].pop()])[0]

    clock = itertools.count()
    made = Comparison(dict.fromkeys(SIDES, Side("HEAD", "0" * 40)), CELLS, (), 0.02, 1, play, lambda: next(clock))
    list(made.measure(100))
    assert words(made.verdicts()) == [(STEP, "slower"), (STEP, "unsure")]
    assert played.count(CELLS[0]) < played.count(CELLS[1])


def test_other_bits_are_wrong_on_commits_and_on_interpreters():
    assert words(shown(blocks([1.0] * 2, bits="other")).verdicts()) == [(RESULT, "wrong"), (STEP, "unsure")]
    assert {one.subject for one in shown(blocks([1.0] * 2, bits="other"), sha="").verdicts()} == {"tcc/xor"}
