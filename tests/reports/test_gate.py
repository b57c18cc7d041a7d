"""Two runs -> verdicts. Samples are scripted; nothing is timed."""

import random
from types import SimpleNamespace

import pytest

from tests.harness.runs import NOW, cell, measured
from tests.harness.runs import run as made
from zoomgrad.reports.gate import suspects, verdicts
from zoomgrad.results.compare import COMPILE_TIME, RESULT, SPEEDUP, Limits
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import EngineFacts, Proof, Record, Settings

HERE, ELSEWHERE = {"processor": "a", "cores": "2"}, {"processor": "b", "cores": "2"}
SECONDS = {"baseline": 1.0, "hoisted": 0.5, "tcc": 0.001}
NAMES = tuple(SECONDS)
FACTS = {
    name: EngineFacts(idea="", strict=name != "baseline", error_bound=1e-9 if name == "baseline" else None)
    for name in SECONDS
}
LIMITS = Limits(slowdown=0.10, compile_growth=0.5)


def stored(run, records):
    """A run and its records, as a store has them."""
    return SimpleNamespace(run=run, records=lambda: records)


def race(
    slower=None,
    *,
    spread=0.01,
    blocks=5,
    compile_seconds=0.2,
    pace=lambda block: 1.0,
    seen=True,
    seed=1,
    names=tuple(SECONDS),
    **run,
):
    """Return a run in which each engine's step takes about `slower[engine]` times its usual seconds.

    pace: block -> how many times as long the machine takes for everything. seen: whether the recorded pace shows that.
    names: of the engines.
    """
    chance, slower = random.Random(seed), slower or {}

    def about(seconds, block):
        return seconds * (1 + chance.uniform(-spread, spread)) * pace(block)

    records = [
        measured(
            engine,
            block,
            (about(SECONDS.get(engine, 0.5) * slower.get(engine, 1.0), block),) * 3,
            phases={"compile": about(compile_seconds, block)} if engine == "tcc" else {},
        ).model_copy(update={"pace_seconds": (0.01 * pace(block) ** seen,) * 3})
        for engine in names
        for block in range(blocks)
    ]
    facts = {"cells": tuple(map(cell, names)), "engines": FACTS, "machine": HERE, "blocks": blocks, "seed": seed}
    return stored(made(f"run-{seed}", **{**facts, **run}), records)


def words(found, figure=SPEEDUP):
    return {verdict.cell.engine: verdict.word for verdict in found if verdict.figure == figure}


BASELINE_RUN = race(seed=2)


@pytest.mark.parametrize(
    ("new", "steps", "compiling"),
    [
        (race(), {"hoisted": "same", "tcc": "same"}, "same"),
        (race({"tcc": 1.25, "hoisted": 0.7}), {"hoisted": "faster", "tcc": "slower"}, "same"),
        (race({"tcc": 1.10}), {"hoisted": "same", "tcc": "unsure"}, "same"),
        (race(compile_seconds=0.4), {"hoisted": "same", "tcc": "same"}, "slower"),
        (race({"tcc": 1.25}, machine=ELSEWHERE), {"hoisted": "same", "tcc": "same"}, "same"),
        (race({"tcc": 2.5}, machine=ELSEWHERE), {"hoisted": "same", "tcc": "slower"}, "same"),
        (race(names=("baseline", "tcc")), {"tcc": "same"}, "same"),  # cells that nobody asked for are not lost
    ],
)
def test_only_a_change_that_is_surely_beyond_the_limit_fails(new, steps, compiling):
    found = verdicts(new, BASELINE_RUN, LIMITS)
    assert (words(found), words(found, COMPILE_TIME)) == (steps, {"tcc": compiling})
    assert any(verdict.fails for verdict in found) == ("slower" in (compiling, *steps.values()))


def test_noise_makes_suspects_but_never_fails_a_run():
    found = verdicts(race({"tcc": 1.3}, spread=0.4), BASELINE_RUN, LIMITS)
    assert words(found)["tcc"] == "unsure"
    assert {one.engine for one in suspects(found)} >= {"tcc", "baseline"}


@pytest.mark.parametrize("pace", [lambda block: 3.0, lambda block: 1.0 + block, lambda block: 1.0 + 3 * (block > 2)])
@pytest.mark.parametrize("seen", [True, False])
def test_a_slower_or_drifting_machine_changes_no_verdict(pace, seen):
    """Only ratios within a block count, and compile times have the pace of their process."""
    for new, old in ((race(pace=pace, seen=seen), BASELINE_RUN), (race(), race(seed=2, pace=pace, seen=seen))):
        found = verdicts(new, old, LIMITS)
        assert {verdict.word for verdict in found} == {"same"}
        assert not suspects(found)


def stopped(engine, **fields):
    lost = Record(cell=cell(engine), block=0, status="failed", started_at=NOW, reason="gone", **fields)
    whole = race()
    return stored(whole.run, [record for record in whole.records() if record.cell != lost.cell] + [lost])


WRONG = Proof(reference="tuple/cpython-3.13/xor", steps=2, identical=False, worst_error=0.1)


@pytest.mark.parametrize(
    ("new", "word", "engine"),
    [
        (stopped("tcc"), "lost", "tcc"),
        (stopped("tcc", proof=WRONG), "wrong", "tcc"),
        (stopped("baseline"), "lost", "baseline"),  # and nothing that was to be compared with it
    ],
)
def test_a_cell_without_its_result_fails(new, word, engine):
    (failing,) = [verdict for verdict in verdicts(new, BASELINE_RUN, LIMITS) if verdict.fails]
    assert (failing.word, failing.cell, failing.reason) == (word, cell(engine), "gone")


def test_new_cells_are_not_compared_and_too_few_processes_are_unsure():
    found = verdicts(race(), race(names=("baseline", "tcc")), LIMITS)
    assert [verdict.word for verdict in found if verdict.cell.engine == "hoisted"] == ["new"]
    found = verdicts(race({"tcc": 2.0}, blocks=2), BASELINE_RUN, LIMITS)
    assert words(found)["tcc"] == "unsure"
    assert all("2: run more blocks" in one.reason for one in found if one.figure == SPEEDUP)


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (race(), race(blocks=2), "2 blocks, but an interval needs 3"),
        (race(settings=Settings(value_seconds=0.05)), BASELINE_RUN, r"value_seconds 0\.05, not 0\.4"),
        (race(names=("hoisted",)), race(names=("baseline", "tcc")), "no cell in common"),
    ],
)
def test_runs_that_say_nothing_about_each_other_are_not_compared(new, old, said):
    with pytest.raises(Unreadable, match=said):
        verdicts(new, old, LIMITS)


def test_without_tolerance_a_certain_change_within_the_limit_is_slower():
    slower = race({"tcc": 1.06}, spread=0.002, blocks=30)
    assert words(verdicts(slower, BASELINE_RUN, LIMITS))["tcc"] == "same"
    limits = Limits(slowdown=0.02, reruns=0)
    assert words(verdicts(slower, race(seed=2, blocks=30), limits, tolerant=False))["tcc"] == "slower"


def test_a_weaker_promise_fails():
    loose, close = (EngineFacts(idea="", strict=False, error_bound=bound) for bound in (1e-6, 1e-9))
    loose, close = (race(engines={**FACTS, "tcc": facts}) for facts in (loose, close))
    for new, old, word in (
        (loose, BASELINE_RUN, "weaker"),
        (loose, close, "weaker"),
        (close, close, None),
        (BASELINE_RUN, close, None),
    ):
        assert words(verdicts(new, old, LIMITS), RESULT) == ({"tcc": word} if word else {})
