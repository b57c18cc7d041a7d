"""Two sets of blocks -> a verdict: the words, and the second interval that equal code must not exceed."""

import math

import pytest

from zoomgrad.results.compare import between_runs, word_of
from zoomgrad.results.stats.intervals import Interval


@pytest.mark.parametrize(
    ("low", "high", "gate", "comparison"),
    [
        (1.005, 1.015, "same", "same"),
        (1.01, 1.09, "same", "slower"),
        (1.05, 1.2, "unsure", "slower"),
        (1.11, 1.2, "slower", "slower"),
        (0.92, 0.97, "same", "faster"),
        (0.7, 0.8, "faster", "faster"),
        (math.nan, math.nan, "unsure", "unsure"),
        (0.0, math.inf, "unsure", "unsure"),
    ],
)
def test_the_word_follows_from_the_whole_interval(low, high, gate, comparison):
    ratio = Interval(1.0, low, high)
    assert word_of(ratio, 0.10, 0.10) == gate
    assert word_of(ratio, 0.02) == comparison


def sides(factor, blocks=12):
    """The baseline's and the engine's samples, in blocks that drift."""
    return [[1.0 + n] for n in range(blocks)], [[factor * (1.0 + n) * (1 + 0.001 * (n % 3))] for n in range(blocks)]


def test_a_change_between_runs_needs_both_intervals():
    word, ratio, reason = between_runs(sides(0.6), sides(0.5), 0.1, 0.1, 0.01)
    assert (word, reason) == ("slower", "")
    assert ratio.value == pytest.approx(1.2, rel=0.01)
    assert between_runs(sides(0.5), sides(0.6), 0.1, 0.1, 0.01)[0] == "faster"
    # Five blocks that vary give a 95 % interval beyond the limit, but one in a million runs of equal code does so too.
    few = [[1.0]] * 5, [[0.6 * (1 + 0.02 * n)] for n in range(5)]
    old = [[1.0]] * 5, [[0.5]] * 5
    assert between_runs(few, old, 0.1, 0.1, 0.05)[0] == "slower"
    assert between_runs(few, old, 0.1, 0.1, 1e-6)[0] == "unsure"


@pytest.mark.parametrize(("blocks", "said"), [(2, "needs 3 processes"), (0, "no block measured both sides")])
def test_too_few_blocks_say_why(blocks, said):
    word, ratio, reason = between_runs(sides(0.6, blocks), sides(0.5), 0.1, 0.1, 0.01)
    assert word == "unsure"
    assert math.isnan(ratio.low)
    assert said in reason
