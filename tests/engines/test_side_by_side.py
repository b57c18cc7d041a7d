"""`side_by_side`: its statistics over blocks, resuming from a file, and one real process. Asserts no duration."""

import itertools
import json
import math
import shutil
from pathlib import Path

import pytest

import engines
from engines.api import Unavailable
from harness.worker import pace
from results.stats.intervals import Interval
from tests.engines import side_by_side, side_by_side_worker
from tests.engines.side_by_side import Comparison, NoFigures
from tests.engines.side_by_side_table import FIGURES, Row, failures, ratio, summary, table, undecided

pytestmark = pytest.mark.host

LIMITS = {"steps": 1.03, "compile": 1.05}
ROOT = Path(__file__).parents[2]


def figures(seconds, bits="same"):
    return {**dict.fromkeys(FIGURES.values(), seconds), "bits": bits}


def blocks(*ratios, bits="same"):
    """Return blocks on a machine that gets slower and slower, so only the ratio within a block means something."""
    return [{"base": figures(1.0 + n), "head": figures((1.0 + n) * each, bits)} for n, each in enumerate(ratios)]


def test_the_ratio_is_computed_within_blocks():
    found = ratio(blocks(*[1.02] * 12), "step_seconds")
    assert (found.value, found.low, found.high) == pytest.approx((1.02, 1.02, 1.02))


def test_the_interval_leaves_out_a_disturbed_block():
    found = ratio(blocks(*[0.99, 1.0, 1.01] * 4, 7.0), "step_seconds")
    assert found.value == 1.0
    assert 0.98 < found.low < 1.0 < found.high < 1.02


def test_two_blocks_give_no_bounds():
    row = summary("a/b", blocks(1.0, 1.0))
    assert row.intervals["steps"] == Interval(1.0, 0.0, math.inf)
    assert len(failures(row, LIMITS)) == len(LIMITS)


@pytest.mark.parametrize(("base", "head", "expected"), [(0, 0, None), (0, 1, math.inf), (1, 0, 0.0)])
def test_an_engine_may_compile_nothing(base, head, expected):
    found = ratio([{"base": figures(base), "head": figures(head)}] * 3, "compile_seconds")
    assert (found and found.high) == expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(1.0, 0.98, 1.02), False),  # within the limit
        (Interval(1.0, 0.95, 1.06), True),
        (Interval(1.0, 0.0, math.inf), True),
        (Interval(1.02, 1.01, 1.035), False),  # as precise as asked
        (Interval(1.04, 0.95, 1.09), False),  # more blocks would hardly help
    ],
)
def test_blocks_are_added_to_undecided_cells(interval, expected):
    assert (
        undecided(Row("a/b", 12, {"steps": interval, "steps, paced": Interval(1, 0, 9)}, True), LIMITS, 0.02)
        == expected
    )


def test_every_failure_is_listed():
    slow = summary("slow/b", blocks(*[1.1] * 5))
    other = summary("other/b", blocks(*[1.0] * 5, bits="others"))
    none = summary("none/b", [], problem="exit code 1")
    assert failures(summary("good/b", blocks(*[1.0] * 5)), LIMITS) == []
    assert failures(slow, LIMITS) == [
        "steps: the bound 1.100 exceeds 1.03",
        "compile: the bound 1.100 exceeds 1.05",
    ]
    assert failures(other, LIMITS) == ["bits differ"]
    assert failures(none, LIMITS) == ["exit code 1"]
    assert failures(summary("missing/b", []), LIMITS) == ["no block was measured"]
    text = table([slow, other, none], LIMITS)
    assert "| other/b | 5 | 1.0000 |" in text and "**differ** |" in text and "- none/b: exit code 1" in text
    assert text.endswith(
        "Worst upper bounds: steps 1.100 (slow/b; limit 1.03), compile 1.100 (slow/b; limit 1.05). "
        "Bits identical in 1 of 3 cells."
    )


def test_instructions_have_a_ratio_or_a_reason():
    limits = {"instructions": 1.01}
    counted = summary("a/b", blocks(1.0), {"base": 100.0, "head": 102.0})
    assert failures(counted, limits) == ["instructions: the bound 1.020 exceeds 1.01"]
    not_counted = summary("a/b", blocks(1.0), {"base": 100.0, "head": "SIGILL"})
    assert "- a/b: instructions are not countable: SIGILL" in table([not_counted], limits)


def test_digests_ignore_the_sign_of_zero_and_nan_payloads():
    digest = side_by_side_worker.digest
    assert digest([0.0, math.nan], [1.0]) == digest([-0.0, -math.nan], [1.0])
    assert digest([1.0]) != digest([math.nextafter(1.0, 2.0)])


# --- the file ----------------------------------------------------------------------------------------------------


class Options:
    blocks, most_blocks, until, seed = 3, 60, None, 1


class Processes:
    """A fake for processes: returns the same figures each time, until one fails."""

    def __init__(self, fails_at=math.inf):
        self.fails_at = fails_at
        self.asked = []

    def __call__(self, folder, cell, what, **job):
        self.asked.append((folder.name, cell, what))
        if len(self.asked) >= self.fails_at:
            raise NoFigures("killed")
        return {"steps": 100} if what == "scout" else figures(1.0)


@pytest.fixture
def folders(tmp_path):
    """Two checkouts with different sources."""
    for side in ("base", "head"):
        (tmp_path / side / "engines").mkdir(parents=True)
        (tmp_path / side / "engines" / "a.py").write_text(side)
    return {side: tmp_path / side for side in ("base", "head")}


def test_every_block_has_one_process_of_each_checkout(folders):
    processes = Processes()
    comparison = Comparison(folders, None, processes)
    side_by_side.compare(comparison, ["a/x", "b/x"], Options, LIMITS)
    timed = [(folder, cell) for folder, cell, what in processes.asked if what == "time"]
    pairs = list(zip(timed[::2], timed[1::2]))
    assert all(one[1] == other[1] and {one[0], other[0]} == {"base", "head"} for one, other in pairs)
    assert len({one[0] for one, _ in pairs}) == 2, "the same checkout was always first"
    assert [comparison.row(cell).blocks for cell in ("a/x", "b/x")] == [3, 3]


def test_a_file_is_resumed(folders, tmp_path):
    out = tmp_path / "out.json"
    first = Comparison(folders, out, Processes(fails_at=6))  # two scouts, one block, half a block
    side_by_side.compare(first, ["a/x"], Options, LIMITS)
    assert failures(first.row("a/x"), {}) == ["killed"]
    assert len(json.loads(out.read_text())["blocks"]["a/x"]) == 1

    processes = Processes()
    second = Comparison(folders, out, processes)
    side_by_side.compare(second, ["a/x"], Options, LIMITS)
    assert [what for *_, what in processes.asked] == ["time"] * 4
    assert failures(second.row("a/x"), LIMITS) == []


def test_undecided_cells_get_more_blocks(folders):
    noise = itertools.cycle([0.9, 1.0, 1.1])

    def noisy(folder, cell, what, **job):
        slower = next(noise) if (folder.name, cell, what) == ("head", "noisy/x", "time") else 1.0
        return {"steps": 100, **figures(slower)}

    class Until(Options):
        until = 0.02

    comparison = Comparison(folders, None, noisy)
    side_by_side.compare(comparison, ["noisy/x", "calm/x"], Until, LIMITS)
    assert comparison.row("calm/x").blocks == 3 < comparison.row("noisy/x").blocks < 60


def test_figures_of_different_sources_are_not_mixed(folders, tmp_path):
    out = tmp_path / "out.json"
    comparison = Comparison(folders, out, Processes())
    comparison.block("a/x", 1)
    (folders["head"] / "engines" / "a.py").write_text("edited")
    with pytest.raises(SystemExit, match="changed while it was measured"):
        comparison.block("a/x", 1)
    assert len(json.loads(out.read_text())["blocks"]["a/x"]) == 1
    with pytest.raises(SystemExit, match="other sources"):
        Comparison(folders, out)


# --- processes ---------------------------------------------------------------------------------------------------


def test_a_real_process_trains_this_checkout():
    first, second = (side_by_side.process(ROOT, "tuple/xor", "time", steps=8, pace=pace.__file__) for _ in range(2))
    assert first["bits"] == second["bits"]
    assert set(FIGURES.values()) <= set(first)


def test_a_process_that_fails_says_why():
    with pytest.raises(NoFigures, match="there is no engine"):
        side_by_side.process(ROOT, "no-such/xor", "scout")


@pytest.mark.parametrize("cell", ["rerolled-tcc/xor", "rerolled-numpy/xor"])
def test_callgrind_counts_a_real_process(cell):
    """One engine spends its steps in C, the other in NumPy's calls."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed: `apt install valgrind`")
    try:
        engines.load(cell.split("/")[0]).check()
    except Unavailable as missing:
        pytest.skip(missing.reason)
    assert side_by_side.instructions(ROOT, cell) > 50


def test_instructions_are_the_total_of_a_dump(monkeypatch):
    dump = "version: 1\nevents: Ir\nfn=(1) f\n5 10\ntotals: 1234\n"
    assert side_by_side._everything(dump) == 1234.0
    monkeypatch.setattr(side_by_side.shutil, "which", lambda _: None)
    with pytest.raises(NoFigures, match="valgrind is not installed"):
        side_by_side.instructions(ROOT, "tuple/xor")
