"""Training for `zoomgrad train`: the loss every two seconds, then the accuracy.

`python -m zoomgrad.harness.worker.train '["ENGINE", "WORKLOAD", EPOCHS, SEED]'` prints them.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple, Optional

from zoomgrad import datasets
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines import NonFiniteLoss, Unavailable, UnknownName
from zoomgrad.engines.graph.domain import DOMAIN_ERRORS, tell_domain_error
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.job import ready
from zoomgrad.harness.worker.lifeline import end_with_the_harness
from zoomgrad.harness.workloads import Workload
from zoomgrad.harness.workloads.microgpt import Decay, Sizes, samples

TOLD_SECONDS = 2.0
"""Approximate training time between two losses, which come only between steps."""
PORTION_SECONDS = 0.1
"""Approximate time of a portion of steps."""

SAMPLES = 20
"""Names that a model of names invents at the end."""

FAILURES = (Unavailable, UnknownName, datasets.Unavailable, CorruptData, NonFiniteLoss)
"""How a training fails. The text has the remedy."""


class Trained(NamedTuple):
    """A training that has ended."""

    steps: int
    loss: float
    """Mean loss of the last epoch's steps."""
    within_tolerance: bool
    accuracy: float
    samples: list[str]


def task(name: str, epochs: Optional[int], seed: Optional[int]) -> Workload:
    """The workload with these epochs and this seed; None keeps the workload's. Raises UnknownName and Unavailable."""
    workload = workloads.load(name)
    if not workload.learns:
        raise Unavailable(f"{name} runs forward passes only", "Choose a workload that learns, such as `digits`.")
    if epochs is not None:
        workload = replace(workload, epochs=epochs)
        if isinstance(workload.rate, Decay):
            workload = replace(workload, rate=replace(workload.rate, steps=epochs * workload.steps_per_epoch))
    return workload if seed is None else replace(workload, seed=seed)


def train(engine_name: str, workload: Workload) -> Trained:
    """Train, and print the loss now and then. Raises one of FAILURES."""
    try:
        engine = ready(engine_name, workload)
    except Unavailable as none:
        raise Unavailable(f"{engine_name} can't train {workload.name}: {none.reason}", none.remedy) from None
    evaluated_on, _ = workload.evaluation_rows()  # raise for missing data now, not after the training
    trainer = engine.prepare(workload)
    losses, epoch_steps, tolerance = trainer.losses, workload.steps_per_epoch, workload.tolerance
    total, portion, seconds, told_at, within = workload.epochs * epoch_steps, 1, 0.0, 0.0, False
    while len(losses) < total and not within:
        start = perf_counter()
        trainer.train(min(portion, total - len(losses)))
        losses, elapsed = trainer.losses, perf_counter() - start
        seconds += elapsed
        if tolerance is not None:  # each step is an epoch
            within = math.sqrt(losses[-1]) / workload.samples_per_step <= tolerance
        elif elapsed < PORTION_SECONDS:
            portion *= 2
        if seconds - told_at >= TOLD_SECONDS:
            told_at = seconds
            print(f"step {len(losses):,} of {total:,}: loss {losses[-1]:.4g}, {seconds:.1f} s", flush=True)
    steps, loss = len(losses), math.fsum(each / epoch_steps for each in losses[-epoch_steps:])
    if tolerance is not None:  # return to the parameters that gave the loss by training up to the last update
        trainer.restart(batch=workload.batch)
        trainer.train(steps - 1)
    try:
        accuracy = workload.accuracy(trainer.predict)
        names = samples(workload, trainer.predict, SAMPLES) if isinstance(workload.build, Sizes) else []
    except DOMAIN_ERRORS as error:  # the last update was too large
        tell_domain_error(steps, error)
        raise
    stopped = "" if tolerance is None else f"{'within the tolerance' if within else 'tolerance not reached'}, "
    print(
        f"seed {workload.seed}: {steps:,} steps, loss {loss:.4g}, {stopped}accuracy {accuracy:.2%} on {evaluated_on}, "
        f"{seconds:.3f} s, {1e6 * seconds / steps:.1f} µs per step"
    )
    if names:
        print(f"invented: {', '.join(names)}")
    return Trained(steps, loss, within, accuracy, names)


def main() -> None:
    """Print the training that the first argument describes in JSON. Exit with 1 if it failed, and 130 after Ctrl-C."""
    end_with_the_harness()
    engine, name, epochs, seed = json.loads(sys.argv[1])
    try:
        train(engine, task(name, epochs, seed))
    except FAILURES as failure:
        print(f"zoomgrad: {failure}", file=sys.stderr, flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
