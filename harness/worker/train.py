"""Interactive training for `zoomgrad train`: epochs with loss and accuracy, until a tolerance is reached.

`python -m harness.worker.train SETTINGS` prints events as they happen, one JSON dictionary per line: `start`,
`progress`, `epoch` and `end`, or `failed`. The harness displays them; any other program that reads lines can too.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, Optional, TypedDict

import datasets
import engines
from datasets.idx import CorruptData
from engines import NonFiniteLoss, Unavailable
from engines.api import Trainer
from harness.worker.job import ready
from harness.worker.lifeline import end_with_the_harness
from harness.workloads import Workload

REPORT_SECONDS = 0.2
"""Approximate interval of progress events, which come only between steps."""

LIVE_ROWS = 100
"""Number of evaluation rows for the live accuracy."""

LIVE_SHARE = 0.1
"""Approximate limit of the live accuracy's time, as a share of the training time, which excludes it."""

CURVE_POINTS = 32


class Settings(TypedDict):
    """Settings of a training."""

    engine: str
    workload: str
    epochs: Optional[int]
    """Most epochs; None for the workload's number."""
    tolerance: Optional[float]
    """Stop when an epoch's mean loss is below this; None for the workload's tolerance, if it has one."""
    repeats: int
    """Number of trainings from different starting parameters: seeds count up from the workload's."""


Event = dict[str, Any]


def train(settings: Settings) -> Iterator[Event]:
    """Yield the events of all repeats. Raises UnknownName, Unavailable and datasets.Unavailable before the first."""
    engine, workload, refusal = ready(settings["engine"], settings["workload"])
    workload.evaluation_rows()  # raise for missing data now, not after an epoch
    if refusal:
        raise Unavailable(refusal, "Choose another engine from `zoomgrad list`.")
    for repeat in range(settings["repeats"]):
        yield from _train_once(engine, replace(workload, seed=workload.seed + repeat), settings)


def _train_once(engine: engines.Engine, workload: Workload, settings: Settings) -> Iterator[Event]:
    tolerance = workload.tolerance if settings["tolerance"] is None else settings["tolerance"]
    epochs = workload.epochs if settings["epochs"] is None else settings["epochs"]
    steps_per_epoch = workload.steps_per_epoch
    yield {"event": "start", "seed": workload.seed, "epochs": epochs, "steps_per_epoch": steps_per_epoch}
    start = perf_counter()
    trainer = engine.prepare(workload)
    prepare_seconds = perf_counter() - start
    live = _Live(trainer, workload)
    converged, epoch, loss, accuracy = False, 0, math.nan, None
    try:
        while epoch < epochs and not converged:
            epoch += 1
            for seconds in _portions(trainer, steps_per_epoch):
                live.trained(seconds)
                if live.due():
                    yield {
                        "event": "progress",
                        "epoch": epoch,
                        "steps": len(trainer.losses),
                        "loss": trainer.losses[-1],
                        "accuracy": live.accuracy(),
                        "accuracy_rows": LIVE_ROWS,
                    }
            loss = math.fsum(trainer.losses[-steps_per_epoch:]) / steps_per_epoch
            converged = tolerance is not None and loss < tolerance
            accuracy = None
            # An epoch of a tour is one short step: printing ten thousand lines a second would take most of the time.
            if live.due_for_epoch():
                accuracy = workload.accuracy(trainer.predict)
                yield {
                    "event": "epoch",
                    "epoch": epoch,
                    "loss": loss,
                    "accuracy": accuracy,
                    "train_seconds": live.train_seconds,
                }
    except NonFiniteLoss as error:
        yield {"event": "failed", "reason": f"seed {workload.seed}: {error}"}
        return
    yield {
        "event": "end",
        "seed": workload.seed,
        "epochs": epoch,
        "converged": None if tolerance is None else converged,
        "loss": loss,
        "curve": curve(trainer.losses, CURVE_POINTS),
        "accuracy": workload.accuracy(trainer.predict) if accuracy is None else accuracy,
        "evaluated_on": workload.evaluation_rows()[0],
        "prepare_seconds": prepare_seconds,
        "train_seconds": live.train_seconds,
        "steps": len(trainer.losses),
    }


def curve(losses: array[float], points: int) -> list[tuple[int, float]]:
    """Loss curve of at most `points` pairs (steps taken, mean loss of the steps since the pair before)."""
    ends = sorted({round(len(losses) * (index + 1) / points) for index in range(points)} - {0})
    return [(end, math.fsum(losses[start:end]) / (end - start)) for start, end in zip([0, *ends], ends)]


class _Live:
    """Clock of a training, and pacing of its events."""

    def __init__(self, trainer: Trainer, workload: Workload) -> None:
        self._trainer = trainer
        self._workload = workload
        self.train_seconds = 0.0
        self._told = self._told_epoch = self._evaluate_at = 0.0
        self._accuracy = math.nan

    def trained(self, seconds: float) -> None:
        self.train_seconds += seconds

    def due(self) -> bool:
        if self.train_seconds - self._told < REPORT_SECONDS:
            return False
        self._told = self.train_seconds
        return True

    def due_for_epoch(self) -> bool:
        """Epoch events are rarer than progress events, because each evaluates all rows."""
        if self.train_seconds - self._told_epoch < 10 * REPORT_SECONDS:
            return False
        self._told_epoch = self.train_seconds
        return True

    def accuracy(self) -> float:
        """Recent accuracy on a sample of the evaluation rows."""
        if self.train_seconds >= self._evaluate_at:
            start = perf_counter()
            self._accuracy = self._workload.accuracy(self._trainer.predict, rows=LIVE_ROWS)
            self._evaluate_at = self.train_seconds + (perf_counter() - start) / LIVE_SHARE
        return self._accuracy


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


def main() -> None:
    """Print the events of the training that the first argument describes in JSON."""
    end_with_the_harness()
    try:
        for event in train(json.loads(sys.argv[1])):
            print(json.dumps(event), flush=True)
    except (Unavailable, datasets.Unavailable, CorruptData) as missing:
        print(json.dumps({"event": "failed", "reason": str(missing)}), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
