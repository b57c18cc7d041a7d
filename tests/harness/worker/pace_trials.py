"""Which fixed work slows down in step with the engines: `python -m tests.harness.worker.pace_trials` prints a table.

For a minute, engines and candidate paces take turns in one process. For each candidate, the table has the standard
deviation of the logarithm of its time, over rounds of some tenths of a second, and that of each engine's time divided
by it. The slope is the part of the candidate's variation that the engine shares: 1 means all of it. The script runs on
every worker interpreter.
"""

import math
import tempfile
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from time import perf_counter

from engines.api import Store
from harness.worker.job import ready
from harness.worker.pace import HAS_JIT, pace

SECONDS = 60
TURNS = 4
"""Turns of each in a round."""
ENGINES = (("tcc", "xor"), ("rerolled-tcc", "tour"), ("baseline", "xor"))


def one_after_another():
    """A chain of dependent multiplications, which was the pace in an earlier version."""
    x = 1.0
    for _ in range(4_000_000 if HAS_JIT else 200_000):
        x = x * 0.9999999 + 1e-7


def ten_milliseconds(engine, workload):
    """Return work that takes the warm engine ten milliseconds: as many steps as fit."""
    loaded, model, refusal = ready(engine, workload)
    assert not refusal, refusal
    trainer = loaded.prepare(model, objects=Store(Path(tempfile.mkdtemp())))
    trainer.restart(batch=model.batch)
    steps, end = 1, perf_counter() + 2
    while True:
        seconds = timed(trainer.train, steps)
        if seconds < 0.01:
            steps += steps // 8 + 1
        elif perf_counter() > end:
            return partial(trainer.train, steps)


def timed(work, *arguments):
    start = perf_counter()
    work(*arguments)
    return perf_counter() - start


def slope(of, over):
    mean_of, mean_over = fmean(of), fmean(over)
    together = sum((x - mean_of) * (y - mean_over) for x, y in zip(of, over))
    return together / sum((y - mean_over) ** 2 for y in over)


def main():
    candidates = {"one multiplication after another": one_after_another, "`pace`": pace}
    works = {f"`{engine}`, {workload}": ten_milliseconds(engine, workload) for engine, workload in ENGINES}
    works.update(candidates)
    logs = {name: [] for name in works}
    end = perf_counter() + SECONDS
    while perf_counter() < end:
        turns = [{name: math.log(timed(work)) for name, work in works.items()} for _ in range(TURNS)]
        for name, found in logs.items():
            found.append(fmean(turn[name] for turn in turns))
    print("| over | itself |", " | ".join(name for name in works if name not in candidates), "|")
    print("|---|---:|" + "---:|" * len(ENGINES))
    for candidate in candidates:
        by = logs[candidate]
        cells = [
            f"{stdev([x - y for x, y in zip(logs[name], by)]):.3f} (slope {slope(logs[name], by):.2f})"
            for name in works
            if name not in candidates
        ]
        print(f"| {candidate} | {stdev(by):.3f} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
