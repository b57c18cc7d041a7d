"""Training for `zoomgrad train`: epochs with loss and accuracy, until the workload's tolerance is reached.

`python -m zoomgrad.harness.worker.train '["ENGINE", "WORKLOAD", EPOCHS, SEED]'` prints them.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple, Optional

from zoomgrad import datasets
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines import NonFiniteLoss, Unavailable, UnknownName
from zoomgrad.engines.api import Trainer
from zoomgrad.engines.graph.domain import DOMAIN_ERRORS, tell_domain_error
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.job import ready
from zoomgrad.harness.worker.lifeline import end_with_the_harness
from zoomgrad.harness.workloads import Workload
from zoomgrad.harness.workloads.microgpt import Decay, Sizes, samples

PORTION_SECONDS = 0.2
"""Approximate interval of progress, which is shown only between steps."""

EVALUATION_SECONDS = 2.0
"""Approximate training time between two accuracies on all evaluation rows, which exclude their own time."""

ERASE = "\r\x1b[K"
"""Clears the terminal's line."""

SAMPLES = 20
"""Names that a model of names invents at the end."""

FAILURES = (Unavailable, UnknownName, datasets.Unavailable, CorruptData, NonFiniteLoss)
"""How a training fails. The text has the remedy."""


class Trained(NamedTuple):
    """A training that has ended."""

    epochs: int
    loss: float
    """Mean loss of the last epoch's steps."""
    within_tolerance: bool
    accuracy: float
    samples: list[str]


def task(name: str, epochs: Optional[int], seed: Optional[int]) -> Workload:
    """The workload with these epochs and this seed; None keeps its own. Raises UnknownName and Unavailable."""
    workload = workloads.load(name)
    if not workload.learns:
        raise Unavailable(f"{name} runs forward passes only", "Choose a workload that learns, such as `digits`.")
    if epochs is not None:
        workload = replace(workload, epochs=epochs)
        if isinstance(workload.rate, Decay):
            workload = replace(workload, rate=replace(workload.rate, steps=epochs * workload.steps_per_epoch))
    return workload if seed is None else replace(workload, seed=seed)


def train(engine_name: str, workload: Workload) -> Trained:
    """Train, and print lines about epochs, the step and the end. Raises one of FAILURES."""
    engine = ready(engine_name, workload)
    evaluated_on, _ = workload.evaluation_rows()  # raise for missing data now, not after an epoch
    trainer = engine.prepare(workload)
    steps, tolerance = workload.steps_per_epoch, workload.tolerance
    seconds = evaluated_at = 0.0
    within, epoch, loss = False, 0, math.nan
    while not within and epoch < workload.epochs:
        if epoch and seconds - evaluated_at >= EVALUATION_SECONDS:
            evaluated_at, accuracy = seconds, _accuracy(trainer, workload)
            tell(f"epoch {epoch}: mean loss {loss:.4g}, accuracy {accuracy:.2%}, {seconds:.2f} s")
        epoch += 1
        for portion_seconds in _portions(trainer, steps):
            seconds += portion_seconds
            at = f"epoch {epoch}/{workload.epochs}  step {len(trainer.losses) - (epoch - 1) * steps:,}/{steps:,}"
            tell(f"{at}  loss {trainer.losses[-1]:.4g}", passing=True)
        loss = math.fsum(each / steps for each in trainer.losses[-steps:])
        within = tolerance is not None and math.sqrt(loss) / workload.samples_per_step <= tolerance
    if tolerance is not None:  # return to the parameters that gave the loss by training up to the last update
        trainer.restart(batch=workload.batch)
        trainer.train(epoch * steps - 1)
    accuracy, names = _accuracy(trainer, workload), _invented(workload, trainer)
    stopped = "" if tolerance is None else f"{'within the tolerance' if within else 'tolerance not reached'}, "
    tell(
        f"seed {workload.seed}: {epoch:,} epoch{'s' * (epoch != 1)}, loss {loss:.4g}, {stopped}accuracy {accuracy:.2%} "
        f"on {evaluated_on}, {seconds:.3f} s, {1e6 * seconds / (epoch * steps):.1f} µs per step"
    )
    if names:
        tell(f"invented: {', '.join(names)}")
    return Trained(epoch, loss, within, accuracy, names)


def tell(text: str, *, passing: bool = False) -> None:
    """Print a line; a passing one only on a terminal, where the next line replaces it."""
    is_live = sys.stdout.isatty()
    if is_live or not passing:
        print(f"{ERASE if is_live else ''}{text}", end="" if passing else "\n", flush=True)


def _accuracy(trainer: Trainer, workload: Workload) -> float:
    try:
        return workload.accuracy(trainer.predict)
    except DOMAIN_ERRORS as error:  # the last update was too large
        tell_domain_error(len(trainer.losses), error)
        raise


def _invented(workload: Workload, trainer: Trainer) -> list[str]:
    try:
        return samples(workload, trainer.predict, SAMPLES) if isinstance(workload.build, Sizes) else []
    except DOMAIN_ERRORS:  # the last update was too large
        return []


def _portions(trainer: Trainer, steps: int) -> Iterator[float]:
    """Take the steps in portions of about `PORTION_SECONDS`. Yield the seconds of each."""
    portion = 1
    while steps:
        taken = min(portion, steps)
        start = perf_counter()
        trainer.train(taken)
        seconds = perf_counter() - start
        yield seconds
        steps -= taken
        portion = max(1, round(taken * PORTION_SECONDS / seconds)) if seconds else 2 * portion


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
