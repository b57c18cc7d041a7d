"""The gate's loop with scripted workers: a cell that looks worse is measured again before it fails."""

import pytest

from tests.harness.test_schedule import Observer, Plan, plan, python_of
from tests.harness.workers import Workers
from zoomgrad.harness.cli.commands.check import settle
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.reports.gate import rules
from zoomgrad.reports.gate.limits import Limits
from zoomgrad.reports.gate.rules import measured_run
from zoomgrad.results.record import EngineFacts
from zoomgrad.results.store import Store

LIMITS = Limits(slowdown=0.10)
STEPS = {"baseline": 1.0, "tuple": 0.9, "slots": 0.8, "hoisted": 0.5}


def measured(tmp_path, name, seconds):
    """Measure every cell five times at `seconds(engine, block)` a step; return the schedule and its workers."""
    run = plan(blocks=5).run.model_copy(
        update={
            "id": name,
            "engines": {engine: EngineFacts(idea="", strict=True) for engine in STEPS},
            "machine": {"processor": "a"},
        }
    )
    workers = Workers(tmp_path)
    workers.seconds = lambda engine, block: [seconds(engine, block)] * 2
    store = Store.create(run, under=tmp_path / "runs")
    schedule = Schedule(Plan(run, plan().interpreters, {}), store, workers, python_of, Observer())
    schedule.execute()
    return schedule, workers


def usual(engine, block):
    return STEPS[engine] * (1 + 0.01 * (block % 3))


@pytest.fixture
def judge(tmp_path):
    schedule, _ = measured(tmp_path, "baseline-run", usual)
    old = measured_run(schedule.store.run, schedule.store.records())
    return lambda store: rules.verdicts(measured_run(store.run, store.records()), old, LIMITS)


def failing(judge, schedule):
    return [verdict.cell.engine for verdict in judge(schedule.store) if verdict.fails]


def test_an_identical_run_passes_at_once(tmp_path, judge):
    schedule, workers = measured(tmp_path, "new", usual)
    assert settle(schedule, judge, LIMITS) == ""
    assert not failing(judge, schedule)
    assert len(workers.measured) == 20


def test_a_slow_engine_is_measured_again_with_its_baseline_and_fails(tmp_path, judge):
    schedule, workers = measured(tmp_path, "new", lambda e, b: usual(e, b) * (1.25 if e == "slots" else 1.0))
    assert settle(schedule, judge, LIMITS) == "Suspected regressions were measured again in 5 more blocks."
    assert failing(judge, schedule) == ["slots"]
    assert {engine for engine, block in workers.measured if block >= 5} == {"slots", "baseline"}
    assert max(block for _, block in workers.measured) == 9


def test_an_undecided_cell_is_measured_again_up_to_the_limit(tmp_path, judge):
    schedule, workers = measured(
        tmp_path, "new", lambda e, b: usual(e, b) * (1.3 if e == "slots" and b % 2 == 0 else 1.0)
    )
    assert settle(schedule, judge, LIMITS) == "Suspected regressions were measured again in 35 more blocks."
    assert not failing(judge, schedule)
    assert max(block for _, block in workers.measured) == 39


def test_a_temporary_slowdown_is_cleared_by_measuring_again(tmp_path, judge):
    schedule, _ = measured(tmp_path, "new", lambda e, b: usual(e, b) * (1.3 if e == "slots" and b < 4 else 1.0))
    assert "slots" in {cell.engine for cell in rules.suspects(judge(schedule.store))}
    settle(schedule, judge, LIMITS)
    assert not failing(judge, schedule)
