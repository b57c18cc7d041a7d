"""Blocks of a duet -> verdicts: each word, the clock that counts, means, and how much longer it takes to know."""

import math
import random
from datetime import UTC, datetime

import pytest

from results.duet.blocks import Block, Commit, Duet, Side
from results.duet.verdicts import differing_bits, family, findings, undecided
from results.record import Cell

CELLS = tuple(Cell(engine=engine, interpreter="cpython-3.13", workload="xor") for engine in ("tcc", "gcc-O1"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def duet(*cells, **changes):
    commit = Commit(name="HEAD", sha="0" * 40)
    plan = {"figures": ("step",), "within": 0.02, "budget_seconds": 600, "seed": 1, **changes}
    return Duet(id="duet", created_at=NOW, command=(), base=commit, head=commit, cells=cells or CELLS[:1], **plan)


def side(seconds, compiled=1.0, bits="same", processor=None, waits=0):
    values = (seconds,) * 3
    busy = values if processor is None else (processor,) * 3
    return Side(step_seconds=values, processor_seconds=busy, compile_seconds=(compiled,), bits=bits, waits=waits)


def blocks(ratios, cell=CELLS[0], **changes):
    """Blocks on a machine that gets slower and slower, so that only the ratio within a block means something."""
    return [
        Block(
            cell=cell,
            block=number,
            started_at=NOW,
            seconds=2.0,
            steps=8,
            base=side(1.0 + number),
            head=side((1.0 + number) * ratio, **changes),
        )
        for number, ratio in enumerate(ratios)
    ]


def around(ratio, spread=0.01, count=40, seed=0):
    rng = random.Random(seed)
    return [ratio * math.exp(rng.gauss(0.0, spread)) for _ in range(count)]


@pytest.mark.parametrize(("ratio", "word"), [(1.05, "slower"), (0.95, "faster"), (1.0, "same"), (1.005, "same")])
def test_a_verdict_follows_from_the_whole_interval(ratio, word):
    (found,) = findings(duet(), blocks(around(ratio)))
    assert (found.word, found.seconds_to_know) == (word, 0.0)
    assert found.ratio.low <= found.ratio.value <= found.ratio.high


def test_a_certain_difference_that_does_not_matter_is_the_same():
    (found,) = findings(duet(), blocks([1.01] * 40))
    assert (found.word, found.ratio.low) == ("same", pytest.approx(1.01))
    (found,) = findings(duet(within=0.005), blocks([1.01] * 40))
    assert found.word == "slower"


def test_what_is_not_known_yet_says_how_long_it_would_take():
    found, more = (findings(duet(), blocks(around(1.03, 0.04, count)))[0] for count in (12, 400))
    assert (found.word, more.word) == ("unknown", "slower")
    assert 2.0 <= found.seconds_to_know < 800.0
    # Half of these are slower by far and half are faster, and more blocks like them show nothing.
    (lasting,) = findings(duet(), blocks([0.5, 2.0] * 10))
    assert lasting.seconds_to_know == math.inf


def test_a_disturbed_block_does_not_hide_a_slowdown():
    (found,) = findings(duet(), blocks([*around(1.05, count=30), 0.2, 0.3]))
    assert found.word == "slower"


def test_a_process_that_waits_for_the_processor_is_not_slow():
    assert blocks([2.0], processor=1.0)[0].log_ratio("step") == 0.0
    # But one that waits for a thread or a file is, and so is one that keeps several processors busy.
    assert blocks([2.0], processor=1.0, waits=1)[0].log_ratio("step") == pytest.approx(math.log(2))
    assert blocks([2.0], processor=4.0)[0].log_ratio("step") == pytest.approx(math.log(2))


def test_each_pair_of_layouts_has_one_vote():
    (block,) = blocks([1.0])
    # Layouts 0 and 1 in turns: HEAD is 4 % slower in the first and 2 % faster in the second, but for one burst.
    head = block.head.model_copy(update={"step_seconds": (1.04, 0.98, 9.0, 0.98, 1.04, 0.98), "processor_seconds": ()})
    base = block.base.model_copy(update={"step_seconds": (1.0,) * 6, "processor_seconds": ()})
    found = block.model_copy(update={"base": base, "head": head, "layouts": 2}).log_ratio("step")
    assert found == pytest.approx((math.log(1.04) + math.log(0.98)) / 2)


def test_an_engine_that_compiles_nothing_has_no_compile_time():
    found = findings(duet(figures=("step", "compile")), blocks([1.0] * 3, compiled=0.0))
    assert [one.figure for one in found] == ["step"]


def test_the_compile_time_has_a_noise_floor():
    found = findings(duet(figures=("step", "compile")), blocks([1.0] * 40, compiled=1.04))
    assert [(one.figure, one.word) for one in found] == [("step", "same"), ("compile", "same")]
    found = findings(duet(figures=("step", "compile")), blocks([1.0] * 40, compiled=1.1))
    assert [(one.figure, one.word) for one in found] == [("step", "same"), ("compile", "slower")]


def test_cells_and_their_mean_share_the_error():
    plan = duet(*CELLS)
    assert (family(plan), family(duet())) == (3, 1)
    found = findings(plan, [*blocks(around(1.03, 0.02)), *blocks(around(1.03, 0.02, seed=1), CELLS[1])])
    assert [one.subject for one in found] == [*(cell.key for cell in CELLS), "geometric mean of 2 cells"]
    # The mean of two is known more closely than either.
    widths = [one.ratio.high / one.ratio.low for one in found]
    assert widths[2] < min(widths[:2])


def test_eleven_blocks_are_enough_for_one_cell_but_not_for_a_family():
    (alone,) = findings(duet(), blocks([1.05] * 11))
    (first, *_) = findings(duet(*CELLS), blocks([1.05] * 11))
    assert (alone.word, first.word) == ("slower", "unknown")


def test_only_cells_without_a_verdict_are_measured_again():
    plan = duet(*CELLS)
    mixed = findings(plan, [*blocks(around(1.1)), *blocks(around(1.0, 0.5, 5), CELLS[1])])
    assert undecided(mixed) == [CELLS[1]]
    assert undecided(findings(plan, [*blocks([1.0] * 40), *blocks([1.0] * 40, CELLS[1])])) == []


def test_other_bits_are_found():
    assert differing_bits(blocks([1.0] * 2, bits="other")) == [CELLS[0]]
