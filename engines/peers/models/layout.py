"""The project's columns and parameters <-> arrays, for libraries over layers and over scalars."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from zoomgrad.engines.columns import DOUBLES, Column
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.peers.peer import Model, Task


def rows_of(column: Column) -> Any:
    """A view of the column's memory with a row for each step: doubles or bytes. Class labels have one dimension."""
    data = np.frombuffer(column.data, np.float64 if column.kind == DOUBLES else np.uint8)
    return data if column.one_hot else data.reshape(-1, column.width)


def layers(shape: Sequence[int], parameters: Any) -> list[tuple[Any, Any]]:
    """Weights, with a row for each input, and biases of each layer.

    parameters: neuron by neuron, the weights before the bias.
    """
    pairs, end = [], 0
    for nin, nout in zip(shape, shape[1:]):
        start, end = end, end + nout * (nin + 1)
        neurons = np.asarray(parameters[start:end]).reshape(nout, nin + 1)
        pairs.append((np.array(neurons[:, :-1].T, order="C"), np.array(neurons[:, -1])))
    return pairs


def flat(layers: Iterable[tuple[Any, Any]]) -> Any:
    """The inverse of `layers`."""
    return np.concatenate([np.column_stack((np.asarray(weights).T, biases)).ravel() for weights, biases in layers])


class LayeredModel(Model):
    """An MLP whose parameters are weights and biases of each layer."""

    layers: Any

    def parameters(self) -> array[float]:
        return array("d", np.asarray(flat(self.layers), np.float64).tobytes())


class ScalarModel(Model):
    """An MLP whose loss, slopes and outputs are one function of all numbers of a step, called once for each row.

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
