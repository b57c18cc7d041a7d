"""The training contract of all peers, over a Model that a peer's own file defines.

A training is cut into whole batches and the rest, because a proof may begin or end within a batch. Timed stretches
consist of whole batches, except for their last steps.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from zoomgrad.engines.api import Network, NonFiniteLoss, Workload
from zoomgrad.engines.arguments import finite_rate, finite_rates, whole
from zoomgrad.engines.columns import Column
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.training import Trainer


class Task(NamedTuple):
    """Everything that a model needs: network, training rows, starting parameters, and how to compute."""

    network: Network
    features: Column
    targets: Column
    start: array[float]
    batch: int
    """Rows of a whole batch, at most all rows."""
    threads: int


class Model:
    """An MLP under training in one library. A row's number is its place in the task's columns."""

    def __init__(self, task: Task, clock: Clock) -> None:
        """Make the model, and compile what whole batches need, by phase."""
        raise NotImplementedError

    def restart(self, parameters: Any) -> None:
        """Set the parameters, given as an array in Python or in NumPy."""
        raise NotImplementedError

    def whole_batches(self, first: int, batch: int, rates: Sequence[float]) -> list[Any]:
        """Train one batch after the other, and update after each. Return their losses, as the library's vectors."""
        return [self.whole_batch(first + number * batch, batch, rate) for number, rate in enumerate(rates)]

    def whole_batch(self, first: int, batch: int, rate: float) -> Any:
        raise NotImplementedError

    def gradient(self, first: int, rows: int) -> tuple[Any, Any]:
        """The loss of each of these rows, and the sum of their gradients as an array of NumPy."""
        raise NotImplementedError

    def parameters(self) -> array[float]:
        raise NotImplementedError

    def predict(self, features: array[float]) -> Sequence[float]:
        raise NotImplementedError


class PeerTrainer(Trainer):
    """The training contract over a Model."""

    warms_up = True
    """The first pass over a stretch may compile, because a library compiles for each length that it meets."""

    def __init__(self, model: Model, workload: Workload, task: Task, clock: Clock) -> None:
        super().__init__(task.start, workload)
        self._model, self._task = model, task
        self._gradient: Any = None
        """Sum of the gradients of a batch that has begun."""
        self.phases, self.sizes = clock.phases, clock.sizes

    def _begin(self, parameters: Any) -> None:
        self._model.restart(parameters)
        self._gradient = None

    def train(self, steps: int) -> None:
        import numpy as np  # only now, because a start is short

        start, parts, rows_in_all = len(self.losses), list[Any](), self._rows or self._task.features.rows
        step, end = start, start + whole(steps, "steps", 0)
        while step < end:
            row, update, within = (self._first + step) % rows_in_all, step // self._batch, step % self._batch
            left = min(end - step, rows_in_all - row)
            if not within and left >= self._batch:
                rates = finite_rates(self._workload.rate, range(update, update + left // self._batch))
                parts += self._model.whole_batches(row, self._batch, rates)
                step += len(rates) * self._batch
                continue
            rows = min(left, self._batch - within)
            losses, gradient = self._model.gradient(row, rows)
            self._gradient = gradient if self._gradient is None else self._gradient + gradient
            parts.append(losses)
            step += rows
            if step % self._batch == 0:
                change = finite_rate(self._workload.rate(update), update) / self._batch * self._gradient
                self._begin(self._model.parameters() - change)
        for losses in parts:  # only now, because a library may compute them later
            self.losses.extend(np.asarray(losses).tolist())
        if not math.isfinite(sum(self.losses[start:])):  # if the sum is finite, so is each of them
            for step, loss in enumerate(self.losses[start:], start):
                if not math.isfinite(loss):
                    del self.losses[step:]
                    raise NonFiniteLoss(step, loss)

    def parameters(self) -> array[float]:
        return self._model.parameters()

    def gradients(self) -> array[float]:
        return array("d", bytes(8 * len(self._start)) if self._gradient is None else self._gradient.tobytes())

    def predict(self, row: array[float]) -> array[float]:
        return array("d", self._model.predict(row[: self._task.features.width]))
