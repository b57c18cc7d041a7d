"""The project's columns and parameters <-> arrays, in the layout that the libraries use."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from zoomgrad.engines.columns import DOUBLES, Column
from zoomgrad.engines.peers.peer import Model


def rows_of(column: Column) -> Any:
    """A view of the column's memory with a row for each step: doubles or bytes. Class labels have one dimension."""
    data = np.frombuffer(column.data, np.float64 if column.kind == DOUBLES else np.uint8)
    return data if column.one_hot else data.reshape(-1, column.width)


def layers(shape: Sequence[int], parameters: array[float]) -> list[tuple[Any, Any]]:
    """Weights, with a row for each input, and biases of each layer.

    parameters: neuron by neuron, the weights before the bias.
    """
    pairs, end = [], 0
    for nin, nout in zip(shape, shape[1:]):
        start, end = end, end + nout * (nin + 1)
        neurons = np.asarray(parameters[start:end]).reshape(nout, nin + 1)
        pairs.append((np.array(neurons[:, :-1].T, order="C"), np.array(neurons[:, -1])))
    return pairs


def flat(layers: Iterable[tuple[Any, Any]]) -> array[float]:
    """The inverse of `layers`."""
    numbers = array("d")
    for weights, biases in layers:
        neurons = np.column_stack((np.asarray(weights).T, np.asarray(biases)))
        numbers.frombytes(np.ascontiguousarray(neurons, np.float64).tobytes())
    return numbers


class LayeredModel(Model):
    """An MLP whose parameters, and sums of gradients, are weights and biases of each layer."""

    layers: Any
    sums: Any
    """None if all are 0."""

    def finish(self, losses: Sequence[Any]) -> Any:
        return np.concatenate([np.ravel(some) for some in losses]).tolist()

    def parameters(self) -> array[float]:
        return flat(self.layers)

    def gradients(self) -> array[float]:
        if self.sums is None:
            return array("d", bytes(8 * sum(weights.size + biases.size for weights, biases in self.layers)))
        return flat(self.sums)
