"""Time of a step by vector width and by rows taken together: `python -m tests.engines.tiles --workload mnist`.

The table is the evidence for the rules in `engines/rerolled/form.py` and `c_engines.py`: the widest vectors that the
processor has, and as many rows as fit a share of the second-level cache. All forms are built first. Then blocks visit
them in shuffled order, and the table has the median over blocks of microseconds per row. `*` marks the form that the
engine chooses on this machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
from time import perf_counter

import engines
from harness import workloads
from tests.engines.rerolled.rolling import Exactly

WIDTHS = (8, 4, 2)


def numbers(text):
    return [int(part) for part in text.split(",")]


def prepared(engine, form, workload):
    its = Exactly(engine.name, engine.compiler, engine.flags, form, idea="", builds_on="", typical_row_seconds=0.0)
    return its.prepare(workload)


def seconds_per_row(trainer, batch, seconds):
    """Seconds per row over stretches of whole batches."""
    trainer.restart(batch=batch)
    steps, done, start = batch * max(1, 1000 // batch), 0, perf_counter()
    while not done or perf_counter() - start < seconds:
        trainer.train(steps)
        done += steps
    return (perf_counter() - start) / done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="mnist")
    parser.add_argument("--engines", default="rerolled-gcc,rerolled-clang")
    parser.add_argument("--batches", type=numbers, default=[1, 1000])
    parser.add_argument("--widths", type=numbers, default=WIDTHS)
    parser.add_argument("--rows", type=numbers, default=[0], help="0: the engine's choice")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    args = parser.parse_args()
    workload, cells = workloads.load(args.workload), {}
    for name in args.engines.split(","):
        engine = engines.load(name)
        engine.check()
        fitted = engine.fitted
        for width in args.widths:
            for rows in args.rows:
                form = dataclasses.replace(fitted, width=width, rows=rows or None)
                for batch in args.batches:
                    mark = "*" * ((width, rows) == (fitted.width, 0))
                    trainer = prepared(engine, form, dataclasses.replace(workload, batch=batch))
                    cells[
                        name, width, form.rows_together(len(workload.row(0)), len(trainer.parameters())), batch, mark
                    ] = trainer, []
    for _ in range(args.blocks):
        for key, (trainer, times) in random.sample([*cells.items()], len(cells)):
            times.append(seconds_per_row(trainer, key[3], args.seconds))
    print(f"{'engine':24} width  rows  batch  us/row")
    for (name, width, rows, batch, mark), (_, times) in sorted(cells.items()):
        print(f"{name:24} {width:5} {rows:5} {batch:6} {1e6 * statistics.median(times):7.2f}{mark}")


if __name__ == "__main__":
    main()
