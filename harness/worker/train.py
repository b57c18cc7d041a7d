"""Interactive training for `zoomgrad train`: epochs with loss and accuracy, until a tolerance is reached.

`python -m harness.worker.train SETTINGS` prints events as they happen, one JSON dictionary per line: `start`,
`prepared` if there are several graphs (again before the end, if more were compiled later), `progress`, `epoch` and
`end`, or `failed`; and `saved` if the parameters were written to a file. The harness displays them; any other program
that reads lines can too.
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
from engines import NonFiniteLoss, Unavailable, UnknownName
from engines.api import Trainer
from engines.domain import DOMAIN_ERRORS, tell_domain_error
from engines.kernel import object_cache
from engines.kernel.engine import CompiledEngine
from engines.saving.parameters import BadFile, check_destination
from harness import workloads
from harness.worker.figures import refusal
from harness.worker.lifeline import end_with_the_harness
from harness.workloads import Workload, parameters
from harness.workloads.changes import InvalidChange, changed, fresh
from harness.workloads.microgpt import Sizes, samples
from harness.workloads.workload import forget_data

REPORT_SECONDS = 0.2
"""Approximate interval of progress events, which come only between steps."""

LIVE_ROWS = 100
"""Number of evaluation rows for the live accuracy."""

LIVE_SHARE = 0.1
"""Approximate limit of the live accuracy's time, as a share of the training time, which excludes it."""

FREE_SECONDS = 1.0
"""The accuracies between epochs may take this time beyond that share, so that a short training has a curve too."""

LOSS_POINTS, ACCURACY_POINTS = 256, 64
"""Most points of the curves."""

SAMPLES = 20
"""Names that a model of names invents at the end."""

SHORT_POINTS = 16
"""Approximate number of loss points when a training has fewer epochs than this."""


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
    loss: Optional[str]
    activation: Optional[str]
    when_met: bool
    """Whether to compile the graph of each length of a row when one is first met, not before the first step."""
    names: Optional[str]
    """File of the names to train on."""
    shape: Optional[str]
    """Sizes of the layers, as in `784x50x10`."""
    repeats: int
    """Number of trainings from different starting parameters: seeds count up from the workload's. One if absent."""
    fresh_data: bool
    """Whether each training draws its data from its seed."""
    load: Optional[str]
    """File of the parameters to start from."""
    save: Optional[str]
    """File for the parameters at the end."""
    force: bool
    """Whether to replace a file there that zoomgrad did not save."""


Event = dict[str, Any]


def task(settings: Settings, repeat: int = 0) -> Workload:
    """The workload of that repeat. Raises UnknownName, InvalidChange and BadFile."""
    for name in ("save", "load"):
        if settings.get(name) and settings.get("repeats", 1) > 1:
            raise InvalidChange(
                f"--{name} needs one training, and --repeats asks for {settings['repeats']:,}",
                f"Leave out --repeats or --{name}.",
            )
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
    if settings.get("when_met") and not workload.varies:
        raise InvalidChange(
            f"{workload.name} has one graph, so none can be met later", "Leave out --when-met, or choose microgpt."
        )
    workload = replace(workload, seed=workload.seed + repeat)
    return fresh(workload) if settings.get("fresh_data") else workload


def train(settings: Settings) -> Iterator[Event]:
    """Yield the events of all repeats.

    Raises UnknownName, InvalidChange, BadFile, Unavailable and datasets.Unavailable before the first.
    """
    first = task(settings)
    engine = runnable(settings["engine"], first)
    first.evaluation_rows()  # raise for missing data now, not after an epoch
    for repeat in range(settings.get("repeats", 1)):
        yield from _train_once(engine, task(settings, repeat), settings)
        if settings.get("fresh_data"):
            forget_data()


def runnable(name: str, workload: Workload) -> engines.Engine:
    """The engine of that name, which can run that workload. Raises UnknownName, Unavailable and Misbehaved."""
    engine = engines.load(name)
    engine.check()
    reason = refusal(engine, workload)
    if reason:
        raise Unavailable(f"{name} can't run this: {reason}", "Choose another engine from `zoomgrad list`.")
    return engine


def _train_once(engine: engines.Engine, workload: Workload, settings: Settings) -> Iterator[Event]:
    path, force = settings.get("save"), settings.get("force", False)
    tolerance, epochs, steps_per_epoch = workload.tolerance, workload.epochs, workload.steps_per_epoch
    stopping = workload.stopping
    yield {"event": "start", "seed": workload.seed, "epochs": epochs, "steps_per_epoch": steps_per_epoch}
    start = perf_counter()
    objects = object_cache.of_user()
    if settings.get("when_met") and isinstance(engine, CompiledEngine):
        trainer = engine.prepare(workload, objects=objects, ahead=False)
    else:
        trainer = engine.prepare(workload, objects=objects)
    prepare_seconds = perf_counter() - start
    ahead = dict(getattr(trainer, "shape_seconds", {}))
    if workload.varies:
        yield {"event": "prepared", "seconds": prepare_seconds, "shapes": sorted(ahead.items())}
    live = _Live(trainer, workload)
    converged, ended, epoch, loss, figure = False, False, 0, math.nan, math.nan
    try:
        while not ended:
            epoch += 1
            report = stopping.before_update and live.evaluate_if_due(epoch)
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
            try:
                loss = math.fsum(trainer.losses[-steps_per_epoch:]) / steps_per_epoch
            except OverflowError:
                reason = f"the mean loss of epoch {epoch} is too large for a double\n  Lower the rate."
                yield {"event": "failed", "reason": f"seed {workload.seed}: {reason}"}
                return
            figure = stopping.measure(loss, workload.samples_per_step)
            converged = tolerance is not None and stopping.reached(figure, tolerance)
            ended = converged or epoch == epochs
            losses = trainer.losses
            if not stopping.before_update:
                report = live.evaluate_if_due(epoch, at_least=ended)
            elif ended:
                evaluated = live.evaluated(epoch)
                if path or not evaluated:
                    _undo_update(trainer, workload, len(losses) - 1)
                if not evaluated:
                    live.evaluate(epoch)
            # An epoch of a tour is one short step: printing ten thousand lines a second would take most of the time.
            if report:
                yield {
                    "event": "epoch",
                    "epoch": epoch,
                    "loss": loss,
                    "accuracy": live.accuracies[-1][1],
                    "train_seconds": live.train_seconds,
                }
    except NonFiniteLoss as error:
        yield {"event": "failed", "reason": f"seed {workload.seed}: {error}"}
        return
    held_out, invented = workload.evaluation_loss(trainer.predict), _invented(workload, trainer)
    later = {
        inputs: seconds for inputs, seconds in getattr(trainer, "shape_seconds", {}).items() if inputs not in ahead
    }
    if later:
        total = math.fsum(later.values())
        yield {"event": "prepared", "later": True, "seconds": total, "shapes": sorted(later.items())}
    yield {
        "event": "end",
        "seed": workload.seed,
        "epochs": epoch,
        "converged": None if tolerance is None else converged,
        "loss": loss,
        "figure": (stopping.figure, figure),
        "curve": curve(losses, epoch),
        "accuracy": live.accuracies[-1][1],
        "accuracies": live.accuracies,
        "evaluated_on": workload.evaluation_rows()[0],
        "evaluation_loss": held_out,
        "samples": invented,
        "prepare_seconds": prepare_seconds,
        "train_seconds": live.train_seconds,
        "steps": len(losses),
    }
    if path:
        try:
            parameters.save(workload, trainer.parameters(), path, overwrite=force)
        except OSError as error:
            reason = f"{path} can't be written: {error.strerror or error}\n  Name another file with --save."
            yield {"event": "failed", "reason": reason}
        else:
            yield {"event": "saved", "path": path}


def _invented(workload: Workload, trainer: Trainer) -> list[str]:
    try:
        return samples(workload, trainer.predict, SAMPLES) if isinstance(workload.build, Sizes) else []
    except DOMAIN_ERRORS:  # the last update was too large
        return []


def _undo_update(trainer: Trainer, workload: Workload, steps: int) -> None:
    """Return to the parameters before the last update by training up to it again."""
    trainer.restart(batch=workload.batch)
    trainer.train(steps)


def curve(losses: array[float], epochs: int) -> list[tuple[int, float]]:
    """Loss curve of pairs (steps taken, mean loss of the steps since the pair before).

    A pair covers whole epochs, and a short training has the same number of pairs in each. Otherwise, a hard part of
    the data would make waves in the curve.
    """
    steps = len(losses)
    if epochs <= SHORT_POINTS:
        points = epochs * (SHORT_POINTS // epochs)
        ends = sorted({round(steps * (index + 1) / points) for index in range(points)} - {0})
    else:
        stride = -(-epochs // LOSS_POINTS) * (steps // epochs)
        ends = [*range(stride, steps, stride), steps]
    return [(end, _mean(losses[start:end])) for start, end in zip([0, *ends], ends)]


def _mean(losses: array[float]) -> float:
    try:
        return math.fsum(losses) / len(losses)
    except OverflowError:  # the sum of a pair's epochs, each of which has a sum
        return math.fsum(loss / len(losses) for loss in losses)


class _Live:
    """Clock of a training, and pacing of its events."""

    def __init__(self, trainer: Trainer, workload: Workload) -> None:
        self._trainer = trainer
        self._workload = workload
        self.train_seconds = 0.0
        self._told = self._told_epoch = self._evaluate_at = 0.0
        self._accuracy = math.nan
        self.accuracies: list[tuple[int, float]] = []
        """(epoch, accuracy) of some epochs, in order: after the epoch; before it if its stopping rule is."""
        self._epochs_between = 1
        self._curve_seconds = 0.0

    def trained(self, seconds: float) -> None:
        self.train_seconds += seconds

    def due(self) -> bool:
        if self.train_seconds - self._told < REPORT_SECONDS:
            return False
        self._told = self.train_seconds
        return True

    def evaluate_if_due(self, epoch: int, *, at_least: bool = False) -> bool:
        """Evaluate accuracy for that epoch if it is due, or `at_least` then. Returns whether an epoch event is due."""
        report = self._due_for_epoch()
        if report or at_least or self._due_for_curve(epoch):
            self.evaluate(epoch)
        return report

    def _due_for_epoch(self) -> bool:
        """Epoch events are rarer than progress events, because each evaluates all rows."""
        if self.train_seconds - self._told_epoch < 10 * REPORT_SECONDS:
            return False
        self._told_epoch = self.train_seconds
        return True

    def _due_for_curve(self, epoch: int) -> bool:
        """Whether to evaluate accuracy after this epoch."""
        if len(self.accuracies) >= ACCURACY_POINTS:
            self._epochs_between *= 2
            self.accuracies = [point for point in self.accuracies if point[0] % self._epochs_between == 0]
        wanted = epoch % self._epochs_between == 0
        return wanted and self._curve_seconds <= FREE_SECONDS + LIVE_SHARE * self.train_seconds

    def evaluated(self, epoch: int) -> bool:
        """Whether the accuracy for that epoch, the current one, is known."""
        return bool(self.accuracies) and self.accuracies[-1][0] == epoch

    def evaluate(self, epoch: int) -> None:
        """Evaluate accuracy on all evaluation rows for that epoch, the current one."""
        start = perf_counter()
        accuracy = self._evaluate()
        self._curve_seconds += perf_counter() - start
        self.accuracies.append((epoch, accuracy))

    def _evaluate(self, rows: Optional[int] = None) -> float:
        try:
            return self._workload.accuracy(self._trainer.predict, rows=rows)
        except DOMAIN_ERRORS as error:  # the last update was too large
            tell_domain_error(len(self._trainer.losses), error)
            raise

    def accuracy(self) -> float:
        """Recent accuracy on a sample of the evaluation rows."""
        if self.train_seconds >= self._evaluate_at:
            start = perf_counter()
            self._accuracy = self._evaluate(LIVE_ROWS)
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
    except (Unavailable, UnknownName, InvalidChange, BadFile, datasets.Unavailable, CorruptData) as missing:
        print(json.dumps({"event": "failed", "reason": str(missing)}), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
