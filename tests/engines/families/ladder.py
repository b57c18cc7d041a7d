"""Time a step of microgpt on each rung of the ladder, in one run: `python -m tests.engines.families.ladder [RUNG…]`.

A rung is an engine, or `pypy3:slots` for one on another interpreter. Each runs in a separate process. The time of a
step is the mean over the first 1,000 names, with Adam: that of whole trainings if they are short, else that of a step
of each length, weighted by how many of those names have it. The best of several rounds counts.

This is quicker than a race, and less careful: `zoomgrad run --workloads microgpt --engines …` measures in blocks, with
proofs and intervals.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from time import perf_counter

import engines
from engines.kernel import object_cache
from harness import workloads

RUNGS = ("baseline", "slots", "native", "pypy3:slots", "tcc", "rerolled-tcc", "rerolled-gcc", "rerolled-clang")
STEPS = 1000
SHORT_SECONDS = 1e-3
"""Whole trainings are timed if a step takes less."""


def timed(name: str, seconds: float) -> dict[str, float]:
    """Seconds of a step and of all compilation. seconds: about how long to measure."""
    workload, engine = workloads.load("microgpt"), engines.load(name)
    engine.check()
    start = perf_counter()
    trainer = engine.prepare(workload, objects=object_cache.of_user())
    prepared = perf_counter() - start
    lengths = len(workload.shapes())
    until = perf_counter() + seconds
    best: dict[int, float] = {}
    while not best or perf_counter() < until:
        trainer.restart(batch=1)
        for step in range(lengths):
            start = perf_counter()
            trainer.train(1)
            inputs = len(workload.row(step))
            best[inputs] = min(best.get(inputs, 1e9), perf_counter() - start)
    counts = Counter(len(workload.row(step)) for step in range(STEPS))
    mean = sum(best[inputs] * count for inputs, count in counts.items()) / STEPS
    if mean < SHORT_SECONDS:
        mean, until = 1e9, perf_counter() + seconds
        while perf_counter() < until:
            trainer.restart(batch=1)
            start = perf_counter()
            trainer.train(STEPS)
            mean = min(mean, (perf_counter() - start) / STEPS)
    compiled = sum(getattr(trainer, "shape_seconds", {}).values())
    return {"step_seconds": mean, "prepare_seconds": prepared, "shape_seconds": compiled}


def main() -> None:
    """Print a row for each rung."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rungs", nargs="*", default=RUNGS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of measurement for each rung")
    parser.add_argument("--one", action="store_true", help="time one rung in this process, and print JSON")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(timed(given.rungs[0], given.seconds)))
        return
    first = None
    for rung in given.rungs:
        python, _, engine = rung.rpartition(":")
        command = [python or sys.executable, "-m", __spec__.name, "--one", engine, "--seconds", str(given.seconds)]
        reply = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if reply.returncode:
            print(f"{rung:15} failed", flush=True)
            continue
        found = json.loads(reply.stdout)
        first = first or found["step_seconds"]
        print(
            f"{rung:15} {found['step_seconds'] * 1e6:12,.1f} µs per step  {first / found['step_seconds']:9,.0f} times  "
            f"{found['shape_seconds']:6.2f} s for its graphs",
            flush=True,
        )


if __name__ == "__main__":
    main()
