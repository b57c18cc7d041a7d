"""`numpy`: forward and backward by hand, a few matrix products for each batch."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.peers.models.layout import LayeredModel, flat, layers, rows_of
from zoomgrad.engines.peers.peer import Task

ACTIVATIONS = {"relu": lambda z: np.maximum(z, 0, out=z), "tanh": lambda z: np.tanh(z, out=z)}


class NumpyModel(LayeredModel):
    """An MLP with hand-written derivatives."""

    def __init__(self, task: Task, clock: Clock) -> None:
        with clock.phase("load"):
            self.network = task.network
            self.divisor = task.features.divisor
            self.x, self.y = rows_of(task.features), rows_of(task.targets)
            self.restart(task.start)

    def restart(self, parameters: Any) -> None:
        self.layers = layers(self.network.shape, parameters)

    def whole_batch(self, first: int, batch: int, rate: float) -> Any:
        losses, gradient = self.forward_backward(first, batch)
        for parameters, slopes in zip(self.layers, gradient):
            for numbers, change in zip(parameters, slopes):
                change *= rate / batch
                numbers -= change
        return losses

    def gradient(self, first: int, rows: int) -> tuple[Any, Any]:
        losses, gradient = self.forward_backward(first, rows)
        return losses, flat(gradient)

    def forward(self, x: Any) -> list[Any]:
        """The inputs of every layer, then the outputs of the last one."""
        values = [x]
        for number, (w, b) in enumerate(self.layers):
            z = values[-1] @ w
            z += b
            if self.network.activates(number):
                ACTIVATIONS[self.network.activation](z)
            values.append(z)
        return values

    def forward_backward(self, first: int, rows: int) -> tuple[Any, list[tuple[Any, Any]]]:
        """Loss of each row, and the sum of their gradients, layer by layer."""
        x, y = self.x[first : first + rows], self.y[first : first + rows]
        x = np.divide(x, self.divisor, dtype=np.float64) if x.dtype == np.uint8 else x
        values = self.forward(x)
        losses, d = self.loss(values[-1], y)
        gradient = []
        for number in reversed(range(len(self.layers))):
            out = values[number + 1]
            if self.network.activates(number):
                d *= 1 - out * out if self.network.activation == "tanh" else out > 0
            gradient.append((values[number].T @ d, d.sum(axis=0)))
            if number:
                d = d @ self.layers[number][0].T
        return losses, gradient[::-1]

    def loss(self, z: Any, y: Any) -> tuple[Any, Any]:
        """Loss of each row, and its derivatives by the outputs."""
        if self.network.loss == "squared_error":
            d = z - y.astype(np.float64, copy=False)
            return np.square(d).sum(axis=1), 2 * d
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        rows = np.arange(len(p))
        of_label = p[rows, y]
        factor = of_label / (of_label + 0.0001)
        d = p * factor[:, np.newaxis]
        d[rows, y] -= factor
        return -np.log(of_label + 0.0001), d

    def predict(self, features: array[float]) -> Any:
        return self.forward(np.asarray([features]))[-1][0].tolist()
