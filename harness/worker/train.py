"""Interactive training for `zoomgrad train`: epochs with loss and accuracy, until a tolerance is reached.

`python -m zoomgrad.harness.worker.train SETTINGS` prints the text of each event of `train`: `epoch`, then `end`. On a
terminal, `progress` is one line that changes.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from zoomgrad import datasets
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines import NonFiniteLoss, Unavailable, UnknownName
from zoomgrad.engines.api import Trainer
from zoomgrad.engines.graph.domain import DOMAIN_ERRORS, tell_domain_error
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.job import Misbehaved, ready
from zoomgrad.harness.worker.lifeline import end_with_the_harness
from zoomgrad.harness.workloads import Workload
from zoomgrad.harness.workloads.changes import InvalidChange, changed
from zoomgrad.harness.workloads.microgpt import Sizes, samples

REPORT_SECONDS = 0.2
"""Approximate interval of progress events, which come only between steps."""

EVALUATION_SECONDS = 2.0
"""Approximate training time between two accuracies on all evaluation rows, which exclude their own time."""

SAMPLES = 20
"""Names that a model of names invents at the end."""

Settings = Mapping[str, Any]
"""`engine`, `workload`, and the options of `zoomgrad train`. Absent or None keeps the workload's value."""

Event = dict[str, Any]
"""`event` is its kind, and `text` is what to print. The other keys of `end` are the figures of the training."""


def task(settings: Settings) -> Workload:
    """The workload with its changes. Raises UnknownName and InvalidChange."""
    workload = changed(workloads.load(settings["workload"]), settings)
    if not workload.learns:
        raise InvalidChange(
            f"{workload.name} runs forward passes only, so there is nothing to train",
            "Choose a workload that learns, such as `digits`.",
        )
    seed = settings.get("seed")
    return workload if seed is None else replace(workload, seed=seed)


def train(settings: Settings) -> Iterator[Event]:
    """Yield the events of a training. Raises one of FAILURES."""
    workload = task(settings)
    try:
        engine = ready(settings["engine"], workload)
    except Unavailable as none:
        raise Unavailable(f"{settings['engine']} can't run this: {none.reason}", none.remedy) from None
    workload.evaluation_rows()  # raise for missing data now, not after an epoch
    trainer = engine.prepare(workload)
    tolerance, stopping, steps = workload.tolerance, workload.stopping, workload.steps_per_epoch
    seconds = shown_at = evaluated_at = 0.0
    converged, epoch, loss, figure = False, 0, math.nan, math.nan
    while not converged and epoch < workload.epochs:
        if epoch and seconds - evaluated_at >= EVALUATION_SECONDS:
            evaluated_at, accuracy = seconds, _accuracy(trainer, workload)
            text = f"epoch {epoch}: mean loss {loss:.4g}, accuracy {accuracy:.2%}, {seconds:.2f} s"
            yield {"event": "epoch", "text": text}
        epoch += 1
        for portion_seconds in _portions(trainer, steps):
            seconds += portion_seconds
            if seconds - shown_at >= REPORT_SECONDS:
                shown_at, step = seconds, len(trainer.losses) - (epoch - 1) * steps
                at = f"seed {workload.seed}  epoch {epoch}/{workload.epochs}  step {step:,}/{steps:,}"
                yield {"event": "progress", "text": f"{at}  loss {trainer.losses[-1]:.4g}"}
        loss = math.fsum(each / steps for each in trainer.losses[-steps:])
        figure = stopping.measure(loss, workload.samples_per_step)
        converged = tolerance is not None and stopping.reached(figure, tolerance)
    if stopping.before_update:  # return to the parameters before the last update by training up to it again
        trainer.restart(batch=workload.batch)
        trainer.train(epoch * steps - 1)
    end = {
        "seed": workload.seed,
        "epochs": epoch,
        "steps": epoch * steps,
        "converged": None if tolerance is None else converged,
        "loss": loss,
        "figure": (stopping.figure, figure),
        "accuracy": _accuracy(trainer, workload),
        "evaluated_on": workload.evaluation_rows()[0],
        "samples": _invented(workload, trainer),
    }
    yield {"event": "end", "text": _end(end, seconds), **end}


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
    """Take the steps in portions of about `REPORT_SECONDS`. Yield the seconds of each."""
    portion = 1
    while steps:
        taken = min(portion, steps)
        start = perf_counter()
        trainer.train(taken)
        seconds = perf_counter() - start
        yield seconds
        steps -= taken
        portion = max(1, round(taken * REPORT_SECONDS / seconds)) if seconds else 2 * portion


def _end(end: Event, seconds: float) -> str:
    """Text about a training that has ended."""
    parts = [f"seed {end['seed']}: {end['epochs']:,} epoch{'s' * (end['epochs'] != 1)}, loss {end['loss']:.4g}"]
    if end["converged"] is not None:
        figure, value = end["figure"]
        shown = f"{figure} {value:.4g}, " if value != end["loss"] else ""
        parts.append(shown + ("within the tolerance" if end["converged"] else "tolerance not reached"))
    parts.append(f"accuracy {end['accuracy']:.2%} on {end['evaluated_on']}")
    text = ", ".join([*parts, f"{seconds:.3f} s, {1e6 * seconds / end['steps']:.1f} µs per step"])
    return f"{text}\ninvented: {', '.join(end['samples'])}" if end["samples"] else text


def printable(text: str) -> str:
    """The text with its newlines, but without other control characters: an engine may be hostile."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


FAILURES = (
    *(Unavailable, UnknownName, InvalidChange, datasets.Unavailable, CorruptData),
    *(Misbehaved, NonFiniteLoss),
)
"""How a training fails. The text has the remedy."""


def main() -> None:
    """Print the training that the first argument describes in JSON. Exit with 1 if it failed, and 130 after Ctrl-C."""
    end_with_the_harness()
    is_live = sys.stdout.isatty()
    erase = "\r\x1b[K" if is_live else ""
    settings = json.loads(sys.argv[1])
    try:
        for event in train(settings):
            is_progress = event["event"] == "progress"
            if is_live or not is_progress:
                print(f"{erase}{printable(event['text'])}", end="" if is_progress else "\n", flush=True)
    except FAILURES as failure:
        seed = f"seed {task(settings).seed}: " if isinstance(failure, NonFiniteLoss) else ""
        print(f"zoomgrad: {seed}{printable(str(failure))}", file=sys.stderr, flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
