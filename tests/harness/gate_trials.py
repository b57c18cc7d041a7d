"""How often the gate is wrong: `python -m tests.harness.gate_trials FOLDER` prints a table.

False alarms: runs of the same sources, each held against the one before it. Misses: runs in which one engine was slowed
down on purpose, each held against one of those. Everything is real but the slowdown: plan, workers, suspects measured
again. Each trial is kept as a line of FOLDER/trials.jsonl, and is not made again.
"""

import argparse
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

from harness import interpreters, planning
from harness.cli.check import Judge, settle
from harness.interpreters import ROOT
from harness.isolate import isolate
from harness.schedule import Schedule
from results.limits import read_limits
from results.store import Store

SLOWED = {"engine": "tcc", "workload": "xor"}


class Silent:
    def started(self, cell, block): ...
    def finished(self, record, seconds_left): ...
    def extended(self, cells): ...
    def abandoned(self): ...


def planted(factor):
    """An `Isolate` under which one engine takes `factor` times as long."""

    def slowed(task, python, job, **choices):
        if task == "measure" and all(job[key] == value for key, value in SLOWED.items()):
            return isolate(task, python, {**job, "slowed": factor}, package="tests.harness.slowed", **choices)
        return isolate(task, python, job, **choices)

    return slowed


def measured(folder, name, run_worker=isolate, **only):
    """A schedule that has measured a smoke run there."""
    plan = planning.plan("smoke", interpreters.discover(), command=["gate_trials"], **only)
    run = plan.run.model_copy(update={"id": name})
    shutil.rmtree(folder / name, ignore_errors=True)  # of a trial that was interrupted
    store = Store.create(run, under=folder)
    schedule = Schedule(replace(plan, run=run), store, run_worker, interpreters.environment, Silent())
    schedule.execute()
    return schedule


def trial(folder, name, reference, run_worker=isolate, **only):
    """Whether the gate fails a run, and why."""
    schedule = measured(folder, name, run_worker, **only)
    judge = Judge(reference, read_limits(ROOT / "pyproject.toml"))
    rerun = settle(schedule, judge)
    failing = [verdict for verdict in judge(schedule.store) if verdict.fails]
    return {
        "name": name,
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

    def run(number):
        return Store(asked.folder / f"run-{number:02}")

    if not run(0).folder.exists():
        measured(asked.folder, "run-00")
    for pair in todo("the same again", asked.pairs):
        keep(trial(asked.folder, f"run-{pair + 1:02}", run(pair)), "the same again")
    only = {
        "only_engines": ["baseline", SLOWED["engine"]],
        "only_workloads": [SLOWED["workload"]],
        "only_interpreters": [run(0).run.reference_interpreter],
    }
    for factor in asked.slowdowns:
        kind = f"slower by {100 * (factor - 1):.0f} %"
        for number in todo(kind, asked.trials):
            name = f"slow-{round(100 * factor)}-{number:02}"
            keep(trial(asked.folder, name, run(number % asked.pairs), planted(factor), **only), kind)
    print("\n| runs | trials | the gate failed |\n|---|---:|---:|")
    trials, failed = Counter(f["kind"] for f in done), Counter(f["kind"] for f in done if f["failed"])
    for kind, count in trials.items():
        print(f"| {kind} | {count} | {failed[kind]} |")


if __name__ == "__main__":
    main()
