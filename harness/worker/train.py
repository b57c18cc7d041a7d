"""Interactive training for `zoomgrad train`: epochs with loss and accuracy, until a tolerance is reached.

`python -m zoomgrad.harness.worker.train SETTINGS` prints a line for each event of `train`: `epoch`, and `end` or
`failed`; then `saved` if the parameters were written to a file. On a terminal, `progress` is one line that changes.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, Optional, TypedDict

from zoomgrad import datasets, engines
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines import NonFiniteLoss, Unavailable, UnknownName
from zoomgrad.engines.api import Trainer
from zoomgrad.engines.graph.domain import DOMAIN_ERRORS, tell_domain_error
from zoomgrad.engines.saving.parameters import BadFile, check_destination
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.job import refusal
from zoomgrad.harness.worker.lifeline import end_with_the_harness
from zoomgrad.harness.workloads import Workload, parameters
from zoomgrad.harness.workloads.changes import InvalidChange, changed
from zoomgrad.harness.workloads.microgpt import Sizes, samples

REPORT_SECONDS = 0.2
"""Approximate interval of progress events, which come only between steps."""

EVALUATION_SECONDS = 2.0
"""Approximate training time between two accuracies on all evaluation rows, which exclude their own time."""

SAMPLES = 20
"""Names that a model of names invents at the end."""


class Settings(TypedDict, total=False):
    """Settings of a training. Absent or None keeps the workload's value."""

    engine: str
    workload: str
    epochs: Optional[int]
    """Most epochs."""
    tolerance: Optional[float]
    """Stop once the figure of the workload's stopping rule reaches this."""
    rate: Optional[float]
    batch: Optional[int]
    names: Optional[str]
    """File of the names to train on."""
    seed: Optional[int]
    """Seed of the starting parameters."""
    load: Optional[str]
    """File of the parameters to start from."""
    save: Optional[str]
    """File for the parameters at the end."""
    force: bool
    """Whether to replace a file there that zoomgrad did not save."""


Event = dict[str, Any]


def task(settings: Settings) -> Workload:
    """The workload with its changes. Raises UnknownName, InvalidChange and BadFile."""
    if settings.get("force") and not settings.get("save"):
        raise InvalidChange("--force lets --save replace a file, and there is no --save", "Add --save FILE.")
    if settings.get("save"):
        check_destination(str(settings["save"]), overwrite=settings.get("force", False))
    workload = changed(workloads.load(settings["workload"]), settings)
    if not workload.learns:
        raise InvalidChange(
            f"{workload.name} runs forward passes only, so there is nothing to train",
            "Choose a workload that learns, such as `digits`.",
        )
    seed = settings.get("seed")
    return workload if seed is None else replace(workload, seed=seed)


def train(settings: Settings) -> Iterator[Event]:
    """Yield the events of a training.

    Raises UnknownName, InvalidChange, BadFile, Unavailable and datasets.Unavailable before the first.
    """
    workload = task(settings)
    engine = runnable(settings["engine"], workload)
    workload.evaluation_rows()  # raise for missing data now, not after an epoch
    try:
        yield from _train(engine, workload, settings)
    except NonFiniteLoss as error:
        yield {"event": "failed", "reason": f"seed {workload.seed}: {error}"}


def runnable(name: str, workload: Workload) -> engines.Engine:
    """The engine of that name, which can run that workload. Raises UnknownName, Unavailable and Misbehaved."""
    engine = engines.load(name)
    engine.check()
    reason = refusal(engine, workload)
    if reason:
        raise Unavailable(f"{name} can't run this: {reason}", "Choose another engine from `zoomgrad list`.")
    return engine


def _train(engine: engines.Engine, workload: Workload, settings: Settings) -> Iterator[Event]:
    tolerance, epochs, steps_per_epoch = workload.tolerance, workload.epochs, workload.steps_per_epoch
    stopping = workload.stopping
    start = perf_counter()
    trainer = engine.prepare(workload)
    prepare_seconds = perf_counter() - start
    train_seconds = shown_at = evaluated_at = 0.0
    converged, ended, epoch, loss, figure = False, False, 0, math.nan, math.nan
    while not ended:
        epoch += 1
        for seconds in _portions(trainer, steps_per_epoch):
            train_seconds += seconds
            if train_seconds - shown_at >= REPORT_SECONDS:
                shown_at, steps = train_seconds, len(trainer.losses) - (epoch - 1) * steps_per_epoch
                at = f"seed {workload.seed}  epoch {epoch}/{epochs}  step {steps:,}/{steps_per_epoch:,}"
                yield {"event": "progress", "text": f"{at}  loss {trainer.losses[-1]:.4g}"}
        try:
            loss = math.fsum(trainer.losses[-steps_per_epoch:]) / steps_per_epoch
        except OverflowError:
            reason = f"the mean loss of epoch {epoch} is too large for a double\n  Lower the rate."
            yield {"event": "failed", "reason": f"seed {workload.seed}: {reason}"}
            return
        figure = stopping.measure(loss, workload.samples_per_step)
        converged = tolerance is not None and stopping.reached(figure, tolerance)
        ended = converged or epoch == epochs
        if not ended and train_seconds - evaluated_at >= EVALUATION_SECONDS:
            evaluated_at, accuracy = train_seconds, _accuracy(trainer, workload)
            yield {"event": "epoch", "epoch": epoch, "loss": loss, "accuracy": accuracy, "train_seconds": train_seconds}
    steps = len(trainer.losses)
    if stopping.before_update:
        _undo_update(trainer, workload, steps - 1)
    yield {
        "event": "end",
        "seed": workload.seed,
        "epochs": epoch,
        "converged": None if tolerance is None else converged,
        "loss": loss,
        "figure": (stopping.figure, figure),
        "accuracy": _accuracy(trainer, workload),
        "evaluated_on": workload.evaluation_rows()[0],
        "samples": _invented(workload, trainer),
        "prepare_seconds": prepare_seconds,
        "train_seconds": train_seconds,
        "steps": steps,
    }
    if settings.get("save"):
        yield _saved(workload, trainer, str(settings["save"]), overwrite=settings.get("force", False))


def _accuracy(trainer: Trainer, workload: Workload) -> float:
    try:
        return workload.accuracy(trainer.predict)
    except DOMAIN_ERRORS as error:  # the last update was too large
        tell_domain_error(len(trainer.losses), error)
        raise


def _saved(workload: Workload, trainer: Trainer, path: str, *, overwrite: bool) -> Event:
    try:
        parameters.save(workload, trainer.parameters(), path, overwrite=overwrite)
    except OSError as error:
        reason = f"{path} can't be written: {error.strerror or error}\n  Name another file with --save."
        return {"event": "failed", "reason": reason}
    return {"event": "saved", "path": path}


def _invented(workload: Workload, trainer: Trainer) -> list[str]:
    try:
        return samples(workload, trainer.predict, SAMPLES) if isinstance(workload.build, Sizes) else []
    except DOMAIN_ERRORS:  # the last update was too large
        return []


def _undo_update(trainer: Trainer, workload: Workload, steps: int) -> None:
    """Return to the parameters before the last update by training up to it again."""
    trainer.restart(batch=workload.batch)
    trainer.train(steps)


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


def show(event: Event) -> None:
    """Print an event. The text of an engine or a file of names may be hostile, so control characters are replaced."""
    is_live = sys.stdout.isatty()
    if event["event"] == "failed":
        print(f"zoomgrad: {printable(event['reason'])}", file=sys.stderr, flush=True)
    elif event["event"] != "progress":
        for line in LINES[event["event"]](event):
            print(f"{ERASE if is_live else ''}{printable(line)}", flush=True)
    elif is_live:
        print(f"{ERASE}{event['text']}", end="", flush=True)


ERASE = "\r\x1b[K"
"""Erase a terminal's line."""


def printable(text: str) -> str:
    """The text with its newlines, but without other control characters."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _epoch(event: Event) -> Iterator[str]:
    accuracy, seconds = f"accuracy {event['accuracy']:.2%}", f"{event['train_seconds']:.2f} s"
    yield f"epoch {event['epoch']}: mean loss {event['loss']:.4g}, {accuracy}, {seconds}"


def _end(event: Event) -> Iterator[str]:
    epochs = f"{event['epochs']:,} epoch{'s' * (event['epochs'] != 1)}"
    parts = [f"seed {event['seed']}: {epochs}, loss {event['loss']:.4g}"]
    if event["converged"] is not None:
        figure, value = event["figure"]
        shown = f"{figure} {value:.4g}, " if value != event["loss"] else ""
        parts.append(shown + ("within the tolerance" if event["converged"] else "tolerance not reached"))
    parts.append(f"accuracy {event['accuracy']:.2%} on {event['evaluated_on']}")
    seconds = event["train_seconds"]
    yield ", ".join([*parts, f"{seconds:.3f} s, {1e6 * seconds / event['steps']:.1f} µs per step"])
    if event["samples"]:
        yield f"invented: {', '.join(event['samples'])}"


def _kept(event: Event) -> Iterator[str]:
    yield f"Parameters: {os.path.relpath(event['path'])}"


LINES = {"epoch": _epoch, "end": _end, "saved": _kept}
"""Kind of event -> its lines."""


def main() -> None:
    """Print the training that the first argument describes in JSON. Exit with 1 if it failed, and 130 after Ctrl-C."""
    end_with_the_harness()
    failed = False
    try:
        for event in train(json.loads(sys.argv[1])):
            failed |= event["event"] == "failed"
            show(event)
    except (Unavailable, UnknownName, InvalidChange, BadFile, datasets.Unavailable, CorruptData) as missing:
        failed = True
        show({"event": "failed", "reason": str(missing)})
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
