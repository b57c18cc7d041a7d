"""Two runs -> verdicts. Samples are scripted; nothing is timed."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reports.gate.limits import Exemption, Limits
from reports.gate.rules import MeasuredRun, suspects, verdicts
from reports.gate.verdict import COMPILE_TIME, INSTRUCTIONS, SPEEDUP
from reports.gate.verdict_table import page, verdict_table
from results.files import Unreadable
from results.profile import InstructionsProfile
from results.record import Cell, EngineFacts, Proof, Record, Run, Settings

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HERE, ELSEWHERE = {"processor": "a", "cores": "2"}, {"processor": "b", "cores": "2"}
SECONDS = {"baseline": 1.0, "hoisted": 0.5, "tcc": 0.001}
FACTS = {name: EngineFacts(idea="", strict=name != "baseline", error_bound=1e-9) for name in SECONDS}
LIMITS = Limits(slowdown=0.10, compile_growth=0.5)


def cell(engine):
    return Cell(engine=engine, interpreter="cpython-3.13", workload="xor")


def race(
    slower=None, *, spread=0.01, blocks=5, compile_seconds=0.2, machine=None, seed=1, engines=tuple(SECONDS), **run
):
    """Return a run in which each engine's step takes about `slower[engine]` times its usual seconds."""
    chance, slower = random.Random(seed), slower or {}
    records = [
        Record(
            cell=cell(engine),
            block=block,
            status="measured",
            started_at=NOW,
            step_seconds=[SECONDS.get(engine, 0.5) * slower.get(engine, 1.0) * (1 + chance.uniform(-spread, spread))]
            * 3,
            phases={"compile": compile_seconds * (1 + chance.uniform(-spread, spread))} if engine == "tcc" else {},
            proof=Proof(reference="tuple/cpython-3.13/xor", steps=2, identical=True, worst_error=0.0),
        )
        for engine in engines
        for block in range(blocks)
    ]
    fields = {
        "id": f"run-{seed}",
        "created_at": NOW,
        "command": (),
        "preset": "smoke",
        "seed": seed,
        "blocks": blocks,
        "cells": tuple(cell(engine) for engine in engines),
        "reference_interpreter": "cpython-3.13",
        "engines": FACTS,
        "workloads": {},
        "interpreters": {},
        "machine": machine or HERE,
    }
    return MeasuredRun(Run(**{**fields, **run}), records)


def words(found, subject=SPEEDUP):
    return {verdict.cell.engine: verdict.word for verdict in found if verdict.subject == subject}


BASELINE_RUN = race(seed=2)


def test_an_unchanged_run_passes():
    found = verdicts(race(), BASELINE_RUN, LIMITS)
    assert words(found) == {"hoisted": "same", "tcc": "same"}
    assert words(found, COMPILE_TIME) == {"tcc": "same"}
    assert not any(verdict.fails for verdict in found)


def test_a_slower_engine_fails_and_a_faster_one_does_not():
    found = verdicts(race({"tcc": 1.25, "hoisted": 0.7}), BASELINE_RUN, LIMITS)
    assert words(found) == {"tcc": "worse", "hoisted": "better"}
    assert found[0].fails
    assert found[0].change.value == pytest.approx(1 / 1.25, rel=0.03)


def test_a_change_near_the_limit_is_unsure_and_does_not_fail():
    found = verdicts(race({"tcc": 1.10}), BASELINE_RUN, LIMITS)
    assert words(found)["tcc"] == "unsure"
    assert not any(verdict.fails for verdict in found)


def test_noise_makes_suspects_but_never_fails_a_run():
    found = verdicts(race({"tcc": 1.3}, spread=0.4), BASELINE_RUN, LIMITS)
    assert words(found)["tcc"] == "unsure"
    assert {one.engine for one in suspects(found)} >= {"tcc", "baseline"}


def test_a_run_on_a_slower_machine_passes():
    """The gate compares speedups, never seconds, and compile times in units of a baseline step."""
    slower = dict.fromkeys(SECONDS, 3.0)
    found = verdicts(race(slower, compile_seconds=0.6), BASELINE_RUN, LIMITS)
    assert {verdict.word for verdict in found} == {"same"}


def test_a_slower_block_slows_both_sides_and_cancels():
    drifting = [
        record.model_copy(update={"step_seconds": tuple(s * (1 + record.block) for s in record.step_seconds)})
        for record in race().records
    ]
    assert words(verdicts(MeasuredRun(race().run, drifting), BASELINE_RUN, LIMITS)) == {
        "hoisted": "same",
        "tcc": "same",
    }


def drifting(measured, factor):
    """Return the run from a machine that takes `factor(block)` times as long, including for its recorded pace."""
    records = [
        record.model_copy(
            update={
                "step_seconds": tuple(factor(record.block) * seconds for seconds in record.step_seconds),
                "pace_seconds": (0.01 * factor(record.block),) * len(record.step_seconds),
                "phases": {name: factor(record.block) * seconds for name, seconds in record.phases.items()},
            }
        )
        for record in measured.records
    ]
    return MeasuredRun(measured.run, records)


@pytest.mark.parametrize(
    "factor",
    [
        pytest.param(lambda block: 3.0, id="a slower run"),
        pytest.param(lambda block: 1.0 + block, id="slower block by block"),
        pytest.param(lambda block: 1.0 if block < 3 else 4.0, id="slower at the end"),
    ],
)
def test_a_machine_that_drifts_gives_no_verdict_on_compile_time(factor):
    steady = drifting(BASELINE_RUN, lambda block: 1.0)
    for new, old in (
        (drifting(race(), factor), steady),
        (drifting(race(), lambda block: 1.0), drifting(steady, factor)),
    ):
        found = verdicts(new, old, LIMITS)
        assert words(found, COMPILE_TIME) == {"tcc": "same"}
        assert words(found) == {"hoisted": "same", "tcc": "same"}
        assert not suspects(found)


def test_suspects_measured_again_in_a_slow_hour_keep_their_compile_time():
    """The run has five blocks of every cell, then twenty of two cells only. The first five set the usual pace."""
    others = ("tuple", "slots", "local-grads", "replay", "bytecode", "native")
    whole = drifting(race(blocks=25, engines=(*SECONDS, *others)), lambda block: 1.0 if block < 5 else 2.0)
    kept = [record for record in whole.records if record.block < 5 or record.cell.engine in ("baseline", "tcc")]
    found = verdicts(MeasuredRun(whole.run, kept), drifting(BASELINE_RUN, lambda block: 1.0), LIMITS)
    assert words(found, COMPILE_TIME) == {"tcc": "same"}


def test_a_compile_time_that_grew_on_a_drifting_machine_still_fails():
    grown = drifting(race(compile_seconds=0.4), lambda block: 1.0 + block)
    found = verdicts(grown, drifting(BASELINE_RUN, lambda block: 1.0), LIMITS)
    assert words(found, COMPILE_TIME) == {"tcc": "worse"}


def test_a_compile_time_grown_beyond_its_limit_fails():
    found = verdicts(race(compile_seconds=0.4), BASELINE_RUN, LIMITS)
    assert words(found, COMPILE_TIME) == {"tcc": "worse"}
    assert words(found)["tcc"] == "same"


def test_limits_are_wider_on_another_machine():
    found = verdicts(race({"tcc": 1.25}, machine=ELSEWHERE), BASELINE_RUN, LIMITS)
    assert words(found)["tcc"] == "same"
    assert words(verdicts(race({"tcc": 2.5}, machine=ELSEWHERE), BASELINE_RUN, LIMITS))["tcc"] == "worse"


def test_a_cell_may_have_its_own_limits():
    limits = LIMITS.model_copy(update={"cells": (Exemption(match="tcc/*", slowdown=0.4),)})
    assert words(verdicts(race({"tcc": 1.25, "hoisted": 1.25}), BASELINE_RUN, limits)) == {
        "tcc": "same",
        "hoisted": "worse",
    }


def stopped(status, **fields):
    lost = Record(cell=cell("tcc"), block=0, status=status, started_at=NOW, reason="gone", **fields)
    whole = race()
    return MeasuredRun(whole.run, [record for record in whole.records if record.cell != lost.cell] + [lost])


@pytest.mark.parametrize("status", ["failed", "skipped", "timed-out"])
def test_a_lost_cell_fails(status):
    found = verdicts(stopped(status), BASELINE_RUN, LIMITS)
    assert (found[0].word, found[0].cell, found[0].reason) == ("lost", cell("tcc"), "gone")
    assert found[0].fails


def test_a_cell_whose_bits_differ_is_wrong():
    wrong = Proof(reference="tuple/cpython-3.13/xor", steps=2, identical=False, worst_error=0.1)
    assert verdicts(stopped("failed", proof=wrong), BASELINE_RUN, LIMITS)[0].word == "wrong"


def test_a_lost_baseline_fails_only_itself():
    whole = race()
    gone = Record(cell=cell("baseline"), block=0, status="failed", started_at=NOW, reason="gone")
    found = verdicts(
        MeasuredRun(whole.run, [r for r in whole.records if r.cell != gone.cell] + [gone]), BASELINE_RUN, LIMITS
    )
    assert [(verdict.word, verdict.cell.engine) for verdict in found if verdict.fails] == [("lost", "baseline")]


def test_unrequested_cells_are_not_lost_and_new_cells_are_not_compared():
    few = race(engines=("baseline", "tcc"))
    assert words(verdicts(few, BASELINE_RUN, LIMITS)) == {"tcc": "same"}
    found = verdicts(race(), race(engines=("baseline", "tcc")), LIMITS)
    assert [verdict.word for verdict in found if verdict.cell.engine == "hoisted"] == ["new"]


def counted(race_, instructions, **fields):
    profile = InstructionsProfile(
        profiler="instructions",
        cell=cell("tcc"),
        status="measured",
        started_at=NOW,
        tool="callgrind 3.19",
        compiler="tcc 0.9.27",
        steps=50,
        step_instructions=instructions,
        **{"target": "x86-64-v3", **fields},
    )
    return replace(race_, counts=[profile])


def test_an_instruction_count_has_a_tight_limit():
    then = counted(BASELINE_RUN, 1000.0)
    assert words(verdicts(counted(race(), 1000.0), then, LIMITS), INSTRUCTIONS) == {"tcc": "same"}
    assert words(verdicts(counted(race(), 900.0), then, LIMITS), INSTRUCTIONS) == {"tcc": "better"}
    found = verdicts(counted(race(), 1020.0), then, LIMITS)
    assert words(found, INSTRUCTIONS) == {"tcc": "worse"}
    assert not suspects(found)  # another count would give the same number
    assert verdict_table(race().run, BASELINE_RUN.run, found).rows[0][2:6] == (
        "instructions",
        "1,000",
        "1,020",
        "+2.0 %",
    )


def test_counts_for_different_targets_are_not_compared():
    found = verdicts(counted(race(), 2000.0), counted(BASELINE_RUN, 1000.0, target="other"), LIMITS)
    assert words(found, INSTRUCTIONS) == {"tcc": "unsure"}
    assert not any(verdict.fails for verdict in found)


def test_counts_with_different_c_libraries_are_not_compared():
    other = {**HERE, "libc": "another"}
    found = verdicts(counted(race(machine=other), 2000.0), counted(BASELINE_RUN, 1000.0), LIMITS)
    assert words(found, INSTRUCTIONS) == {"tcc": "unsure"}


def test_a_processors_count_is_compared_on_one_machine_with_a_wide_limit():
    by_processor = counted(BASELINE_RUN, 1000.0, target="")
    assert words(verdicts(counted(race(), 1020.0, target=""), by_processor, LIMITS), INSTRUCTIONS) == {"tcc": "same"}
    elsewhere = counted(race(machine=ELSEWHERE), 2000.0, target="")
    assert words(verdicts(elsewhere, by_processor, LIMITS), INSTRUCTIONS) == {"tcc": "unsure"}


def test_too_few_processes_are_unsure_and_refused_as_a_baseline_run():
    found = verdicts(race({"tcc": 2.0}, blocks=2), BASELINE_RUN, LIMITS)
    assert words(found)["tcc"] == "unsure"
    assert "no interval" in verdict_table(race().run, BASELINE_RUN.run, found).rows[0][5]

    with pytest.raises(Unreadable, match="2 blocks, but an interval needs 3"):
        verdicts(race(), race(blocks=2), LIMITS)


def test_runs_with_different_settings_are_not_compared():
    with pytest.raises(Unreadable, match=r"value_seconds 0\.05, not 0\.4"):
        verdicts(race(settings=Settings(value_seconds=0.05)), BASELINE_RUN, LIMITS)


def test_runs_without_a_common_cell_are_not_compared():
    with pytest.raises(Unreadable, match="no cell in common"):
        verdicts(race(engines=("hoisted",)), race(engines=("baseline", "tcc")), LIMITS)


def test_without_a_baseline_on_both_sides_every_verdict_is_unsure():
    found = verdicts(race(engines=("hoisted", "tcc")), BASELINE_RUN, LIMITS)
    assert words(found) == {"hoisted": "unsure", "tcc": "unsure"}
    assert "no baseline" in found[0].reason


def test_a_cell_that_never_settled_is_unsure():
    whole = race()
    falling = tuple(0.9**index for index in range(40))
    restless = [r.model_copy(update={"step_seconds": falling}) if r.cell == cell("tcc") else r for r in whole.records]
    found = verdicts(MeasuredRun(whole.run, restless), BASELINE_RUN, LIMITS)
    assert [(v.subject, v.word) for v in found if v.cell == cell("tcc")] == [("result", "unsure")]


def test_the_table_has_a_sentence_and_rows():
    found = verdicts(race({"tcc": 1.25}), BASELINE_RUN, LIMITS)
    table = verdict_table(race().run, BASELINE_RUN.run, found, "Suspects were measured again in 5 more blocks.")
    assert not table.passed
    assert table.sentence.startswith("FAILED against run-2: 1 worse, 2 same.")
    (row,) = table.rows
    assert row[:3] == ("WORSE", "tcc/cpython-3.13/xor", "speedup")
    assert row[5].startswith("+2")
    assert row[6] == "+10 %"


def test_the_table_mentions_changed_tools():
    updated = race(machine=HERE | {"gcc": "13.1.0"}).run
    table = verdict_table(updated, race(machine=HERE | {"gcc": "12.2.0"}).run, [])
    assert table.sentence.endswith("which alone may change speedups: gcc 13.1.0, not 12.2.0.")


def test_the_page_escapes_a_reason():
    found = verdicts(stopped("failed"), BASELINE_RUN, LIMITS)
    nasty = [verdict.__class__(verdict.cell, "result", "lost", reason="<b>x</b> | y") for verdict in found[:1]]
    text = page(verdict_table(race().run, BASELINE_RUN.run, nasty))
    assert "&lt;b&gt;x&lt;/b&gt; \\| y" in text
    assert "<b>" not in text
