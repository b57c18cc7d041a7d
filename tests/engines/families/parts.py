"""Time the passes and the update of a step of microgpt: `python -m tests.engines.families.parts [ENGINE…]`.

A batch that never ends has no update, so steps of such a batch are the passes alone. The rest of a step is its update,
with the call of the learning rate's schedule. Both kinds of training take turns on one trainer of each engine; the
shortest of many stretches counts, because a machine's other work only adds time.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import engines
from engines.families.trainer import FamilyTrainer
from harness import workloads

ENGINES = ("rerolled-gcc", "rerolled-clang", "rerolled-clang-fast")
STEPS, TURNS = 1000, 40
NEVER = 10**9
"""A batch with more steps than a stretch."""


def seconds(trainer: FamilyTrainer, batch: int) -> float:
    """Seconds per step."""
    trainer.restart(batch=batch)
    start = perf_counter()
    trainer.train(STEPS)
    return (perf_counter() - start) / STEPS


def main() -> None:
    """Print the times of a step, of its passes, and the difference, which is its update's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", default=ENGINES)
    trainers: dict[str, FamilyTrainer] = {}
    for name in parser.parse_args().engines:
        trainer = engines.load(name).prepare(workloads.load("microgpt"))
        assert isinstance(trainer, FamilyTrainer)
        trainers[name] = trainer
    best = {(name, batch): float("inf") for name in trainers for batch in (1, NEVER)}
    for _ in range(TURNS):
        for name, batch in best:
            best[name, batch] = min(best[name, batch], seconds(trainers[name], batch))
    for name in trainers:
        step, passes = (1e6 * best[name, batch] for batch in (1, NEVER))
        print(f"{name:20} step {step:.1f} µs, passes {passes:.1f} µs, update {step - passes:.1f} µs")


if __name__ == "__main__":
    main()
