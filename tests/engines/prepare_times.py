"""Time of `prepare` and of a step, engine by engine: `python -m tests.engines.prepare_times --workload mnist`.

Every figure comes from a fresh process, which imports the engine and checks it before the clock starts. Blocks visit
the engines in shuffled order. Prints medians over blocks: wall seconds of `prepare`, the CPU seconds of the process and
its compilers meanwhile, the sum of the phases as a share of the wall time, the time of a step, and the peak memory of
the process by the end of `prepare`. The engines `from the cache` use the object cache of users, which the first block
fills; that block does not count.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

ROOT = Path(__file__).parents[2]
ENGINES = ("baseline", "hoisted", "native", "tcc", "rerolled-tcc", "rerolled-gcc", "rerolled-clang")
CACHED = ("rerolled-gcc", "rerolled-clang")
FROM_CACHE = " from the cache"


def cpu_seconds():
    """CPU seconds of this process and of those that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)))


def measure(name, workload_name, steps_seconds):
    """What one process measures."""
    import engines
    from engines.kernel import object_cache
    from harness import workloads

    engine, workload = engines.load(name.removesuffix(FROM_CACHE)), workloads.load(workload_name)
    engine.check()
    workload.row(0)
    objects = object_cache.of_user() if name.endswith(FROM_CACHE) else None
    cpu, start = cpu_seconds(), perf_counter()
    trainer = engine.prepare(workload, objects=objects)
    wall, cpu = perf_counter() - start, cpu_seconds() - cpu
    phases = sum(trainer.phases.values())
    peak_bytes = getrusage(RUSAGE_SELF).ru_maxrss * 1024
    trainer.train(1)
    steps, start = 0, perf_counter()
    while not steps or perf_counter() - start < steps_seconds:
        trainer.train(max(1, steps))
        steps = steps * 2 or 1
    seconds = (perf_counter() - start) / steps
    return {"wall": wall, "cpu": cpu, "phases": phases, "step": seconds, "peak": peak_bytes}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--workload", default="mnist")
    parser.add_argument("--engines", default=",".join((*ENGINES, *(f"{name}{FROM_CACHE}" for name in CACHED))))
    parser.add_argument("--step-seconds", type=float, default=0.5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one, chosen.workload, chosen.step_seconds)))
        return
    names, found = chosen.engines.split(","), {}
    for block in range(-1, chosen.blocks):
        for name in random.sample(names, len(names)):
            command = [sys.executable, "-m", "tests.engines.prepare_times", "--one", name]
            command += ["--workload", chosen.workload, "--step-seconds", str(chosen.step_seconds)]
            answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            if block >= 0:
                found.setdefault(name, []).append(json.loads(answer.stdout))
    print(f"{chosen.workload}, {chosen.blocks} blocks, Python {sys.version.split()[0]}")
    print(f"{'engine':<32} {'prepare':>9} {'CPU':>9} {'phases':>7} {'step':>12} {'peak':>9}")
    for name in names:
        wall, cpu, phases, step, peak = (
            statistics.median(one[key] for one in found[name]) for key in ("wall", "cpu", "phases", "step", "peak")
        )
        share = f"{phases / wall:.1%}" if phases else ""
        print(
            f"{name:<32} {wall:>7.3f} s {cpu:>7.3f} s {share:>7} {step * 1e6:>9,.1f} µs {peak / 1e6:>6,.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
