"""The training contract over a Value class: row -> loss -> gradients -> update.

There are two trainers. One builds a new graph for every step, as micrograd does; the other builds it once and replays
it. They differ only in how they take a step. A step is a sequence of stages, one method each, so that a profiler can
time them (`harness/worker/anatomy.py`).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

from zoomgrad.engines.api import NonFiniteLoss, Workload
from zoomgrad.engines.arguments import finite_rate
from zoomgrad.engines.graph.arithmetic import check_arithmetic
from zoomgrad.engines.graph.domain import DOMAIN_ERRORS, tell_domain_error
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.nn import Networks
from zoomgrad.engines.training import Trainer


class ScalarTrainer(Trainer):
    """A model whose parameters are Values. Subclasses define how to take one step."""

    STAGES: ClassVar[tuple[str, ...]]
    """Methods that a step calls in order; "update" follows the last step of a batch."""

    def __init__(self, nn: Networks, workload: Workload) -> None:
        self._workload = workload
        self.Value = nn.Neuron.Value
        self._model = workload.model(nn)
        self._parameters = self._model.parameters()
        super().__init__(self.parameters(), workload.batch)
        self._learns = workload.learns
        self._kept = self._no_states()
        """The numbers that the optimiser keeps for each parameter."""
        self.phases: Mapping[str, float] = {}
        self.sizes: Mapping[str, float] = {}

    def _row_count(self) -> int:
        return sum(len(shape.rows) for shape in self._workload.shapes())

    def _begin(self, parameters: array[float]) -> None:
        self._kept = self._no_states()
        for p, start in zip(self._parameters, parameters):
            p.data = start
            p.grad = 0.0

    def train(self, steps: int) -> None:
        check_arithmetic()
        for _ in range(steps):
            step = len(self.losses)
            place = self._first + step
            row = self._workload.row(place % self._rows if self._rows else place)
            try:
                loss = self._step(row)
            except DOMAIN_ERRORS as error:
                tell_domain_error(step, error)
                raise
            if isinstance(loss, complex) or not math.isfinite(loss):
                raise NonFiniteLoss(step, loss)
            self.losses.append(loss)
            if self._learns and (step + 1) % self._batch == 0:
                number = step // self._batch
                self.update(finite_rate(self._workload.rate(number), number))

    def _step(self, row: array[float]) -> float:
        """Run forward and, if the workload learns, backward for one row, which adds to the parameters' gradients.

        Returns the loss.
        """
        raise NotImplementedError

    def update(self, rate: float) -> None:
        batch, optimiser = self._batch, self._workload.optimiser
        if optimiser is not SGD:
            self._optimise(optimiser.function, optimiser.numbers(len(self.losses) // batch - 1, rate))
            return
        for p in self._parameters:
            p.data -= rate * p.grad / batch
            p.grad = 0.0

    def _optimise(self, update: Callable[..., tuple[float, ...]], numbers: Sequence[float]) -> None:
        """An update by an optimiser other than plain descent."""
        for p, kept in zip(self._parameters, self._kept):
            p.data, *kept[:] = update(p.data, p.grad, *numbers, self._batch, *kept)
            p.grad = 0.0

    def _no_states(self) -> list[list[float]]:
        return [[0.0] * len(self._workload.optimiser.states) for _ in self._parameters]

    def parameters(self) -> array[float]:
        return array("d", [p.data for p in self._parameters])

    def gradients(self) -> array[float]:
        return array("d", [p.grad for p in self._parameters])

    def predict(self, row: array[float]) -> array[float]:
        check_arithmetic()
        inputs = [self.Value(x) for x in row]
        return array("d", [o.data for o in self._workload.outputs(self._model, inputs)])


class RebuildingTrainer(ScalarTrainer):
    """Builds a new graph for every row."""

    STAGES = ("build", "backward", "free", "update")

    _loss: Any

    def _step(self, row: array[float]) -> float:
        self.build(row)
        if self._learns:
            self.backward()
        value: float = self._loss.data
        self.free()
        return value

    def build(self, row: array[float]) -> None:
        """Build the graph of a row, which also computes its data."""
        inputs = [self.Value(x) for x in row]
        self._loss = self._workload.loss(self._model, inputs, self._workload.outputs(self._model, inputs))

    def backward(self) -> None:
        self._loss.backward()

    def free(self) -> None:
        """Drop the only reference to the graph."""
        self._loss = None


class _Graph(NamedTuple):
    """A graph to replay, for rows of one length."""

    inputs: list[Any]
    outputs: list[Any]
    loss: Any
    fresh: list[Any]
    """Values whose gradients do not persist."""
    forward: list[tuple[Any, Any]]
    backward: list[tuple[Any, Any]]


class ReplayingTrainer(ScalarTrainer):
    """Replays one graph for all rows of a length, with the `_forward` and `_backward` functions of its Values."""

    STAGES = ("forward", "backward", "update")

    def __init__(self, nn: Networks, workload: Workload) -> None:
        start = perf_counter()
        super().__init__(nn, workload)
        self._graphs: dict[int, _Graph] = {}
        """Length of a row -> its graph."""
        self._turn_to(workload.row(0))
        self.phases = {"trace": perf_counter() - start}

    def _turn_to(self, row: array[float]) -> None:
        """Make the graph of that row the current one. Build it if it is the first row of its length."""
        if len(row) not in self._graphs:
            self._graphs[len(row)] = self._traced(row)
        self._graph = self._graphs[len(row)]

    def _traced(self, row: array[float]) -> _Graph:
        inputs = [self.Value(x) for x in row]
        try:
            outputs = self._workload.outputs(self._model, inputs)
            loss = self._workload.loss(self._model, inputs, outputs)
        except DOMAIN_ERRORS as error:
            tell_domain_error(len(self.losses), error)
            raise
        order = loss.topo()
        parameters = set(self._parameters)
        return _Graph(
            inputs,
            outputs,
            loss,
            [v for v in order if v not in parameters],
            [(v._forward, v) for v in order if v._prev],
            [(v._contribute, v) for v in reversed(order) if v._prev],
        )

    def predict(self, row: array[float]) -> array[float]:
        self.forward(row)
        return array("d", [o.data for o in self._graph.outputs])

    def _step(self, row: array[float]) -> float:
        self.forward(row)
        if self._learns:
            self.backward()
        value: float = self._graph.loss.data
        return value

    def forward(self, row: array[float]) -> None:
        """Recompute the data of every Value, operands first."""
        if len(row) != len(self._graph.inputs):
            self._turn_to(row)
        graph = self._graph
        for leaf, x in zip(graph.inputs, row):
            leaf.data = x
        for forward, v in graph.forward:
            forward(v)

    def backward(self) -> None:
        graph = self._graph
        for v in graph.fresh:
            v.grad = 0.0
        graph.loss.grad = 1.0
        for backward, v in graph.backward:
            backward(v)
