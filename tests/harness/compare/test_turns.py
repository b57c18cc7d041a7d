"""Blocks in turns -> verdicts: each word, the clock that counts, and the family that shares an error."""

import math
import random
from datetime import UTC, datetime

import pytest

from zoomgrad.harness.compare.turns import Block, Plan, Side, Subject, undecided, verdicts
from zoomgrad.results.compare import COMPILE_TIME, RESULT, STEP
from zoomgrad.results.record import Cell

CELLS = tuple(Cell(engine=engine, interpreter="cpython-3.13", workload="xor") for engine in ("tcc", "gcc-O1"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def plan(*cells, sha="0" * 40, **changes):
    side = Subject(name="HEAD", sha=sha)
    fields = {"within": 0.02, "budget_seconds": 600, "seed": 1, "strict": ("tcc",), **changes}
    return Plan(id="plan", created_at=NOW, command=(), base=side, head=side, cells=cells or CELLS[:1], **fields)


def side(seconds, compiled=0.0, bits="same", processor=None, waits=0):
    values = (seconds,) * 3
    busy = values if processor is None else (processor,) * 3
    return Side(step_seconds=values, processor_seconds=busy, compile_seconds=(compiled,), bits=bits, waits=waits)


def blocks(ratios, cell=CELLS[0], base_compiled=0.0, **changes):
    """Blocks on a machine that gets slower and slower, so that only the ratio within a block means something."""
    return [
        Block(
            cell=cell,
            block=number,
            started_at=NOW,
            seconds=2.0,
            steps=8,
            base=side(1.0 + number, base_compiled),
            head=side((1.0 + number) * ratio, **changes),
        )
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
    (found,) = verdicts(plan(), blocks([*around(ratio), *disturbed]))
    assert found.word == word
    assert found.ratio.low <= found.ratio.value <= found.ratio.high


def test_a_process_that_waits_for_the_processor_is_not_slow():
    assert blocks([2.0], processor=1.0)[0].log_ratio(STEP) == 0.0
    # But one that waits for a thread or a file is, and so is one that keeps several processors busy.
    assert blocks([2.0], processor=1.0, waits=1)[0].log_ratio(STEP) == pytest.approx(math.log(2))
    assert blocks([2.0], processor=4.0)[0].log_ratio(STEP) == pytest.approx(math.log(2))


def test_each_pair_of_layouts_has_one_vote():
    (block,) = blocks([1.0])
    # Layouts 0 and 1 in turns: the head is 4 % slower in the first and 2 % faster in the second, but for one burst.
    head = block.head.model_copy(update={"step_seconds": (1.04, 0.98, 9.0, 0.98, 1.04, 0.98), "processor_seconds": ()})
    base = block.base.model_copy(update={"step_seconds": (1.0,) * 6, "processor_seconds": ()})
    found = block.model_copy(update={"base": base, "head": head, "layouts": 2}).log_ratio(STEP)
    assert found == pytest.approx((math.log(1.04) + math.log(0.98)) / 2)


@pytest.mark.parametrize(("compiled", "word"), [(0.0, None), (1.04, "same"), (1.1, "slower")])
def test_compile_times_may_differ_by_more(compiled, word):
    made = blocks([1.0] * 40, base_compiled=min(compiled, 1.0), compiled=compiled)
    assert words(verdicts(plan(), made)) == [(STEP, "same"), *([(COMPILE_TIME, word)] if word else [])]


def test_all_figures_of_all_cells_share_the_error():
    assert (plan(*CELLS).family, plan().family) == (4, 2)
    agreeing, other = blocks([1.05] * 13), CELLS[0].model_copy(update={"workload": "tour"})
    assert words(verdicts(plan(), agreeing)) == [(STEP, "slower")]
    assert words(verdicts(plan(*CELLS, other), agreeing)) == [(STEP, "unsure")]


def test_only_cells_without_a_verdict_are_measured_again():
    mixed = verdicts(plan(*CELLS), [*blocks(around(1.1)), *blocks(around(1.0, 0.5, 5), CELLS[1])])
    assert undecided(mixed) == [CELLS[1]]
    assert undecided(verdicts(plan(*CELLS), [*blocks([1.0] * 40), *blocks([1.0] * 40, CELLS[1])])) == []


def test_other_bits_are_wrong_on_commits_and_on_interpreters():
    found = verdicts(plan(), blocks([1.0] * 2, bits="other"))
    assert words(found) == [(RESULT, "wrong"), (STEP, "unsure")]
    found = verdicts(plan(sha=""), blocks([1.0] * 2, bits="other"))
    assert {one.subject for one in found} == {"tcc/xor"}
