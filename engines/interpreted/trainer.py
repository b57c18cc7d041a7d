"""The training contract over a Value class: row -> loss -> gradients -> update.

There are two trainers. One builds a new graph for every step, as micrograd does; the other builds it once and replays
it. They differ only in how they take a step. A step is a sequence of stages, one method each, so that a profiler can
time them (`harness/worker/profiling/anatomy.py`).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from time import perf_counter
from typing import Any, ClassVar, Optional

from engines.api import NonFiniteLoss, Workload
from engines.arguments import finite_rate
from engines.arithmetic import check_arithmetic
from engines.domain import DOMAIN_ERRORS, tell_domain_error
from engines.nn import Networks


class ScalarTrainer:
    """A model whose parameters are Values. Subclasses define how to take one step."""

    STAGES: ClassVar[tuple[str, ...]]
    """Methods that a step calls in order; "update" follows the last step of a batch."""

    def __init__(self, nn: Networks, workload: Workload) -> None:
        self._workload = workload
        self.Value = nn.Neuron.Value
        self._model = workload.model(nn)
        self._parameters = self._model.parameters()
        self._start = self.parameters()
        self._batch = workload.batch
        self._learns = workload.learns
        self._rows: Optional[int] = None
        self.losses = array("d")
        self.phases: Mapping[str, float] = {}
        self.sizes: Mapping[str, int] = {}

    def restart(self, *, batch: int, rows: Optional[int] = None) -> None:
        self._batch = batch
        self._rows = rows
        self.losses = array("d")
        for p, start in zip(self._parameters, self._start):
            p.data = start
            p.grad = 0.0

    def train(self, steps: int) -> None:
        check_arithmetic()
        for _ in range(steps):
            step = len(self.losses)
            row = self._workload.row(step % self._rows if self._rows else step)
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
        batch = self._batch
        for p in self._parameters:
            p.data -= rate * p.grad / batch
            p.grad = 0.0

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


class ReplayingTrainer(ScalarTrainer):
    """Replays one graph for all rows, with the `_forward` and `_backward` functions of its Values."""

    STAGES = ("forward", "backward", "update")

    def __init__(self, nn: Networks, workload: Workload) -> None:
        start = perf_counter()
        super().__init__(nn, workload)
        self._inputs = [self.Value(x) for x in workload.row(0)]
        try:
            self._outputs = workload.outputs(self._model, self._inputs)
            self._loss = workload.loss(self._model, self._inputs, self._outputs)
        except DOMAIN_ERRORS as error:
            tell_domain_error(0, error)
            raise
        order = self._loss.topo()
        parameters = set(self._parameters)
        self._fresh = [v for v in order if v not in parameters]
        self._forward = [(v._forward, v) for v in order if v._prev]
        self._backward = [(v._contribute, v) for v in reversed(order) if v._prev]
        self.phases = {"trace": perf_counter() - start}

    def predict(self, row: array[float]) -> array[float]:
        self.forward(row)
        return array("d", [o.data for o in self._outputs])

    def _step(self, row: array[float]) -> float:
        self.forward(row)
        if self._learns:
            self.backward()
        value: float = self._loss.data
        return value

    def forward(self, row: array[float]) -> None:
        """Recompute the data of every Value, operands first."""
        for leaf, x in zip(self._inputs, row):
            leaf.data = x
        for forward, v in self._forward:
            forward(v)

    def backward(self) -> None:
        for v in self._fresh:
            v.grad = 0.0
        self._loss.grad = 1.0
        for backward, v in self._backward:
            backward(v)
