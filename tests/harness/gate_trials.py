"""Error rates of the gate: `python -m tests.harness.gate_trials FOLDER` prints a table.

The script first makes a baseline run, as CONTRIBUTING.md describes. To count false alarms, it measures the same sources
again and compares each run with the baseline run, measuring suspects again as the gate does. Then it compares the same
run, additional blocks included, with the previous one, and measures nothing again. To count misses, it slows one engine
down on purpose and compares the run with the baseline run. Everything except the slowdown is real: the plan, the
workers, and the repeated measurement of suspects. Each trial is kept as a line of FOLDER/trials.jsonl and is not
repeated.
"""

import argparse
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

from harness.cli.commands.check import Gate, settle
from harness.machine import environments, interpreters
from harness.plan import planning
from harness.run.isolate import isolate
from harness.run.schedule import Schedule
from reports.gate.limits import read_limits
from results.places import ROOT
from results.store import Store

SLOWED = {"engine": "tcc", "workload": "xor"}
BASELINE_RUN, SAME, PAIR = "baseline run", "the same again", "the same again, against the run before"
PRECISION = 0.05
"""Precision of the baseline run's speedups."""


class Silent:
    def started(self, cell, block): ...
    def finished(self, record, seconds_left): ...
    def extended(self, cells): ...
    def abandoned(self): ...


def planted(factor):
    """Return an `Isolate` that makes one engine take `factor` times as long."""

    def slowed(task, python, job, **choices):
        if task == "measure" and all(job[key] == value for key, value in SLOWED.items()):
            return isolate(task, python, {**job, "slowed": factor}, package="tests.harness.slowed", **choices)
        return isolate(task, python, job, **choices)

    return slowed


def measured(folder, name, run_worker=isolate, **choices):
    """Measure a smoke run in that folder, and return its schedule."""
    plan = planning.plan("smoke", interpreters.discover(), command=["gate_trials"], **choices)
    run = plan.run.model_copy(update={"id": name})
    shutil.rmtree(folder / name, ignore_errors=True)  # left by an interrupted trial
    store = Store.create(run, under=folder)
    schedule = Schedule(replace(plan, run=run), store, run_worker, environments.environment, Silent())
    schedule.execute()
    return schedule


def trial(schedule, baseline_run, again=True):
    """Return whether the gate fails a run, and why."""
    gate = Gate(baseline_run, read_limits(ROOT / "pyproject.toml"))
    rerun = settle(schedule, gate) if again else ""
    failing = [verdict for verdict in gate.verdicts(schedule.store) if verdict.fails]
    return {
        "name": schedule.store.run.id,
        "failed": bool(failing),
        "rerun": rerun,
        "why": [f"{v.cell} {v.subject} {v.word} {1 / v.change.value - 1:+.1%}" for v in failing],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--slowdowns", type=float, nargs="+", default=[1.5, 1.25, 1.1])
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    log = asked.folder / "trials.jsonl"
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def keep(found, kind):
        done.append({**found, "kind": kind})
        with log.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print(json.dumps(done[-1]), flush=True)

    def todo(kind, count):
        return range(sum(found["kind"] == kind for found in done), count)

    before = baseline_run = Store(asked.folder / "baseline-run")
    for _ in todo(BASELINE_RUN, 1):
        measured(asked.folder, "baseline-run", precision=PRECISION)
        keep({"name": "baseline-run", "failed": False}, BASELINE_RUN)
    for number in range(asked.pairs):
        name = f"run-{number:02}"
        if number in todo(PAIR, asked.pairs):
            schedule = measured(asked.folder, name)
            keep(trial(schedule, baseline_run), SAME)
            keep(trial(schedule, before, again=False), PAIR)
        before = Store(asked.folder / name)
    only = {
        "only_engines": ["baseline", SLOWED["engine"]],
        "only_workloads": [SLOWED["workload"]],
        "only_interpreters": [baseline_run.run.reference_interpreter],
    }
    for factor in asked.slowdowns:
        kind = f"slower by {100 * (factor - 1):.0f} %"
        for number in todo(kind, asked.trials):
            name = f"slow-{round(100 * factor)}-{number:02}"
            keep(trial(measured(asked.folder, name, planted(factor), **only), baseline_run), kind)
    print("\n| runs | trials | the gate failed |\n|---|---:|---:|")
    trials, failed = (
        Counter(f["kind"] for f in done if f["kind"] != BASELINE_RUN),
        Counter(f["kind"] for f in done if f["failed"]),
    )
    for kind, count in trials.items():
        print(f"| {kind} | {count} | {failed[kind]} |")


if __name__ == "__main__":
    main()
