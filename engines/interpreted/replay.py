"""One graph for all steps: a forward function for each backward function of `hoisted` recomputes the data."""

from __future__ import annotations

import math
from array import array
from time import perf_counter
from typing import Any, NamedTuple

from zoomgrad.engines.api import DOMAIN_ERRORS, Unavailable, Workload, tell_domain_error
from zoomgrad.engines.interpreted import hoisted
from zoomgrad.engines.interpreted.trainer import ScalarTrainer
from zoomgrad.engines.nn import Networks
from zoomgrad.engines.value_base import power

FORWARD = {
    hoisted.add_backward: lambda out, a, b: a.data + b.data,
    hoisted.mul_backward: lambda out, a, b: a.data * b.data,
    hoisted.pow_backward: lambda out, a, _: power(a.data, out._exponent),
    hoisted.relu_backward: lambda out, a, _: 0 if a.data < 0 else a.data,
    hoisted.tanh_backward: lambda out, a, _: math.tanh(a.data),
    hoisted.exp_backward: lambda out, a, _: math.exp(a.data),
    hoisted.log_backward: lambda out, a, _: math.log(a.data),
    hoisted.sigmoid_backward: lambda out, a, _: 1 / (1 + math.exp(-a.data)),
    hoisted.max_backward: lambda out, a, b: a.data if a.data > b.data else b.data,
}
"""Backward function -> what recomputes the data of a Value from its first and its last operand."""


class _Graph(NamedTuple):
    """A graph to replay, for rows of one length."""

    inputs: list[Any]
    outputs: list[Any]
    loss: Any
    forward: list[tuple[Any, Any, Any, Any]]
    """A function and its arguments, for each Value but the leaves, operands first."""
    backward: list[tuple[Any, Any]]


class ReplayingTrainer(ScalarTrainer):
    """Replays one graph for all rows of a length, with the forward and backward functions of its Values."""

    STAGES = ("forward", "backward", "update")

    def __init__(self, nn: Networks, workload: Workload) -> None:
        start = perf_counter()
        super().__init__(nn, workload)
        self._graphs: dict[int, _Graph] = {}
        """Length of a row -> its graph."""
        try:
            self._graph = self._graph_for(workload.row(0))
        except DOMAIN_ERRORS as error:
            tell_domain_error(0, error)
            raise
        self.phases = {"trace": perf_counter() - start}

    def _graph_for(self, row: array[float]) -> _Graph:
        """The graph for rows of that length, built for the first such row."""
        if len(row) not in self._graphs:
            inputs = [self.Value(x) for x in row]
            outputs = self._workload.outputs(self._model, inputs)
            loss = self._workload.loss(self._model, inputs, outputs)
            computed = [v for v in loss.topo() if v._prev]
            if not all(v._contribute in FORWARD for v in computed):
                raise Unavailable("replay can't compute an operation that a program adds", "Use `--engine hoisted`.")
            forward = [(FORWARD[v._contribute], v, v._prev[0], v._prev[-1]) for v in computed]
            backward = [(v._contribute, v) for v in reversed(computed)]
            self._graphs[len(row)] = _Graph(inputs, outputs, loss, forward, backward)
        return self._graphs[len(row)]

    def predict(self, row: array[float]) -> array[float]:
        self.forward(row)
        return array("d", [o.data for o in self._graph.outputs])

    def _step(self, row: array[float]) -> float:
        self.forward(row)
        if self._workload.learns:
            self.backward()
        value: float = self._graph.loss.data
        return value

    def forward(self, row: array[float]) -> None:
        """Recompute the data of every Value, operands first, and clear its gradient."""
        self._graph = graph = self._graph_for(row)
        for leaf, x in zip(graph.inputs, row):
            leaf.data = x
        for forward, v, a, b in graph.forward:
            v.data = forward(v, a, b)
            v.grad = 0.0

    def backward(self) -> None:
        graph = self._graph
        graph.loss.grad = 1.0
        for backward, v in graph.backward:
            backward(v)
