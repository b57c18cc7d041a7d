"""Throughput of a divided step: `python -m tests.engines.threads_times --workload mnist-b1000`.

Three things take turns in shuffled order, in each block: one single-threaded copy alone, as many independent copies as
there are threads, side by side, and the divided step. The table has the median over blocks of microseconds per row, and
the divided step's throughput relative to that of the copies, which no division can beat unless its data fit the caches
better. The first steps must give the same parameters.
"""

from __future__ import annotations

import argparse
import random
import statistics
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import engines
from engines.threads import pool
from harness import workloads


def seconds_per_row(workers, trainers, steps):
    """Wall time for each row, of trainers that run side by side."""
    start = perf_counter()
    for done in [workers.submit(trainer.train, steps) for trainer in trainers]:
        done.result()
    return (perf_counter() - start) / (steps * len(trainers))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="mnist-b1000")
    parser.add_argument("--engine", default="rerolled-clang")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.25, help="of a copy in a block")
    args = parser.parse_args()
    workload = workloads.load(args.workload)

    def prepared(name):
        engine = engines.load(name)
        engine.check()
        return engine.prepare(workload)

    copies = [prepared(args.engine) for _ in range(args.threads)]
    divided = prepared(f"{args.engine}-threads{args.threads}")
    batch = workload.batch
    with ThreadPoolExecutor(args.threads) as workers:
        once = seconds_per_row(workers, copies[:1], 5 * batch)
        steps = batch * max(1, int(args.seconds / once / batch))
        sides = {"one copy": copies[:1], f"{args.threads} copies": copies, "divided": [divided]}
        for trainer in [*copies[1:], divided]:
            trainer.train(5 * batch)
        assert divided.parameters() == copies[1].parameters()
        times = {side: [] for side in sides}
        for _ in range(args.blocks):
            for side, trainers in random.sample([*sides.items()], len(sides)):
                times[side].append(seconds_per_row(workers, trainers, steps))
    medians = {side: statistics.median(found) for side, found in times.items()}
    for side, found in medians.items():
        spread = f"{1e6 * min(times[side]):.2f} to {1e6 * max(times[side]):.2f}"
        print(f"{side:10} {1e6 * found:8.2f} us/row  ({spread})")
    ratios = [copies / one for copies, one in zip(times[f"{args.threads} copies"], times["divided"])]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"the divided step reaches {statistics.median(ratios):.2f} of the copies' throughput ({spread})")
    lib = pool.loaded()
    print(f"{lib.helper_count()} helpers; an empty division takes {lib.empty_division_ns(args.threads)} ns")


if __name__ == "__main__":
    main()
