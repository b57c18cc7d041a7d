"""The gate's loop with scripted workers: a cell that looks worse is measured again before it fails."""

import pytest

from tests.harness.test_schedule import Observer, Plan, plan, python_of
from tests.harness.workers import Workers
from zoomgrad.harness.cli.commands.check import settle
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.reports import gate
from zoomgrad.results.compare import Limits
from zoomgrad.results.record import EngineFacts
from zoomgrad.results.store import Store

STEPS = {"baseline": 1.0, "tuple": 0.9, "slots": 0.8, "hoisted": 0.5}


def measured(tmp_path, name, slowdown=lambda block: 1.0):
    """Measure every cell five times, `slots` slower by `slowdown(block)`; return the schedule and its workers."""
    run = plan(blocks=5).run.model_copy(
        update={
            "id": name,
            "engines": {engine: EngineFacts(idea="", strict=True) for engine in STEPS},
            "machine": {"processor": "a"},
        }
    )
    workers = Workers(tmp_path)
    factors = {"slots": slowdown}
    workers.seconds = lambda engine, block: (
        [STEPS[engine] * (1 + 0.01 * (block % 3)) * factors.get(engine, lambda block: 1.0)(block)] * 2
    )
    store = Store.create(run, under=tmp_path / "runs")
    schedule = Schedule(Plan(run, plan().interpreters), store, workers, python_of, Observer())
    schedule.execute()
    return schedule, workers


@pytest.mark.parametrize(
    ("slowdown", "more", "failing"),
    [
        (lambda block: 1.0, 0, []),
        (lambda block: 1.25, 5, ["slots"]),
        (lambda block: 1.3 if block % 2 == 0 else 1.0, 35, []),  # undecided up to the limit
        (lambda block: 1.3 if block < 4 else 1.0, 5, []),  # a bad minute of the machine
    ],
)
def test_suspects_are_measured_again_with_their_baseline_before_they_fail(tmp_path, slowdown, more, failing):
    old = measured(tmp_path, "baseline-run")[0].store
    schedule, workers = measured(tmp_path, "new", slowdown)

    def judge(store):
        return gate.verdicts(store, old, Limits(slowdown=0.10))

    notes = settle(schedule, judge, Limits(slowdown=0.10))
    assert notes == ([f"Suspected regressions were measured again in {more} more blocks."] if more else [])
    assert [verdict.cell.engine for verdict in judge(schedule.store) if verdict.fails] == failing
    again = {engine for engine, block in workers.measured if block >= 5}
    assert again == ({"slots", "baseline"} if more else set())
