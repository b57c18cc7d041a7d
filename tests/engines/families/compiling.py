"""How long a family takes to compile, and how long its C is: `python -m tests.engines.families.compiling [ENGINE…]`.

Each preparation of `microgpt` is a fresh process without an object cache. Engines take turns, and medians count. Then a
table has the length of the C that `rerolled-clang` makes of single graphs and of whole families, for several sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from statistics import median
from time import perf_counter, process_time

import engines
from engines.kernel.engine import Clock
from engines.rerolled.family import RerolledFamily
from engines.rerolled.merged.merge import merge
from harness import workloads

ENGINES = ("rerolled-tcc", "rerolled-gcc", "rerolled-clang")
SIZES = [(1, 4), (1, 16), (2, 4), (2, 16)]
"""Layers and positions."""


def prepared(name: str) -> dict[str, float]:
    """Seconds of one preparation in this process."""
    workload, engine = workloads.load("microgpt"), engines.load(name)
    engine.check()
    start, own = perf_counter(), process_time()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    trainer = engine.prepare(workload)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "elapsed": perf_counter() - start,
        "our own processor time": process_time() - own,
        "other processes, processor time": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        **trainer.phases,
    }


def lengths(layers: int, positions: int) -> tuple[int, int]:
    """Bytes of C for the graph of the longest name, and for those of all names."""
    engine = engines.load("rerolled-clang")
    assert isinstance(engine, RerolledFamily)
    workload = workloads.load(f"microgpt-L{layers}-D16-H4-T{positions}")
    shape = max(workload.shapes(), key=lambda shape: len(shape.columns))
    tape, *_ = engine._record(Clock(), workload, workload.row(shape.rows[0]))
    return engine.generate(merge([engine.lower_passes(tape)])).size, engine.generate(engine.merged(workload)).size


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", default=ENGINES)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--one", action="store_true", help="prepare in this process, and print JSON")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(prepared(given.engines[0])))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in given.engines}
    for _ in range(given.blocks):
        for name in given.engines:
            command = [sys.executable, "-m", __spec__.name, "--one", name]
            environment = {**os.environ, "ZOOMGRAD_CACHE": "off"}
            reply = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
            found[name].append(json.loads(reply.stdout))
    for name, blocks in found.items():
        medians = {key: median(block[key] for block in blocks) for key in blocks[0]}
        print(f"{name:15} {', '.join(f'{key} {seconds:.2f} s' for key, seconds in medians.items())}")
    first = None
    for layers, positions in SIZES:
        one, family = lengths(layers, positions)
        first = first or one
        print(f"{layers} layers, {positions:2} positions: C {one:,} bytes ({one / first:.2f}), all lengths {family:,}")


if __name__ == "__main__":
    main()
