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
