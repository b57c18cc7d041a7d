"""What peers share that compile a scalar graph: one function of all numbers of a step, called once for each row."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.peers.models.layout import rows_of
from zoomgrad.engines.peers.peer import Model, Task


class ScalarModel(Model):
    """An MLP whose loss, slopes and outputs are a function of parameters, features and targets.

    Class labels become targets of 0 and 1, so that one function serves every label.
    """

    def __init__(self, task: Task, clock: Clock) -> None:
        with clock.phase("load"):
            self.task = task
            self.x, self.y = (rows_of(column) for column in (task.features, task.targets))
            if task.targets.one_hot:
                self.y = np.eye(task.network.shape[-1])[self.y]
            self.arguments, (self.p, self.features, self.targets) = _parts(
                len(task.start), task.network.shape[0], task.network.shape[-1]
            )
            self.results, (self.loss, self.slopes, self.outputs) = _parts(1, len(task.start), task.network.shape[-1])
            self.restart(task.start)
        self.step = self.compiled(clock)

    def compiled(self, clock: Clock) -> Callable[[], Any]:
        """What computes `results` from `arguments`."""
        raise NotImplementedError

    def restart(self, parameters: Any) -> None:
        self.p[:] = parameters

    def whole_batch(self, first: int, batch: int, rate: float) -> Any:
        losses, gradient = self.gradient(first, batch)
        self.p -= rate / batch * gradient
        return losses

    def gradient(self, first: int, rows: int) -> tuple[Any, Any]:
        losses, gradient = np.zeros(rows), np.zeros_like(self.p)
        for number in range(rows):
            np.divide(self.x[first + number], self.task.features.divisor, out=self.features)
            self.targets[:] = self.y[first + number]
            self.step()
            losses[number] = self.loss[0]
            gradient += self.slopes
        return losses, gradient

    def parameters(self) -> array[float]:
        return array("d", self.p.tobytes())

    def predict(self, features: array[float]) -> Any:
        self.features[:] = features
        self.step()
        return self.outputs.tolist()


def _parts(*lengths: int) -> tuple[Any, list[Any]]:
    """An array, and views of its parts of these lengths."""
    numbers = np.zeros(sum(lengths))
    return numbers, np.split(numbers, np.cumsum(lengths)[:-1])
