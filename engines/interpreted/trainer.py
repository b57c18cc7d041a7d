"""The training contract over a Value class: row -> loss -> gradients -> update.

A step is a sequence of stages, one method each, so that a profiler can time them (`harness/worker/anatomy.py`).
"""

from __future__ import annotations

import math
from array import array
from typing import Any, ClassVar

from zoomgrad.engines.api import DOMAIN_ERRORS, NonFiniteLoss, Workload, tell_domain_error
from zoomgrad.engines.arguments import finite_rate
from zoomgrad.engines.graph.arithmetic import check_arithmetic
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.nn import Networks
from zoomgrad.engines.training import Trainer


class ScalarTrainer(Trainer):
    """A model whose parameters are Values. Builds a new graph for every row."""

    STAGES: ClassVar[tuple[str, ...]] = ("build", "backward", "free", "update")
    """Methods that a step calls in order; "update" follows the last step of a batch."""

    def __init__(self, nn: Networks, workload: Workload) -> None:
        self.Value = nn.Neuron.Value
        self._model = workload.model(nn)
        self._parameters = self._model.parameters()
        self._function = workload.optimiser.function()
        super().__init__(self.parameters(), workload)
        self._begin(self._start)

    def _begin(self, parameters: array[float]) -> None:
        self._kept = [[0.0] * len(self._workload.optimiser.states) for _ in parameters]
        """The numbers that the optimiser keeps for each parameter."""
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
            if self._workload.learns and (step + 1) % self._batch == 0:
                number = step // self._batch
                self.update(finite_rate(self._workload.rate(number), number))

    def _step(self, row: array[float]) -> float:
        """Run forward and, if the workload learns, backward for one row. Returns the loss."""
        self.build(row)
        if self._workload.learns:
            self.backward()
        value: float = self._loss.data
        self.free()
        return value

    def build(self, row: array[float]) -> None:
        """Build the graph of a row, which also computes its data."""
        inputs = [self.Value(x) for x in row]
        self._loss: Any = self._workload.loss(self._model, inputs, self._workload.outputs(self._model, inputs))

    def backward(self) -> None:
        self._loss.backward()

    def free(self) -> None:
        """Drop the only reference to the graph."""
        self._loss = None

    def update(self, rate: float) -> None:
        batch, optimiser = self._batch, self._workload.optimiser
        if optimiser is SGD:
            for p in self._parameters:
                p.data -= rate * p.grad / batch
                p.grad = 0.0
            return
        function, numbers = self._function, optimiser.numbers(len(self.losses) // batch - 1, rate)
        for p, kept in zip(self._parameters, self._kept):
            *kept[:], p.data = function(p.data, p.grad, *numbers, batch, *kept)
            p.grad = 0.0

    def parameters(self) -> array[float]:
        return array("d", [p.data for p in self._parameters])

    def gradients(self) -> array[float]:
        return array("d", [p.grad for p in self._parameters])

    def predict(self, row: array[float]) -> array[float]:
        check_arithmetic()
        inputs = [self.Value(x) for x in row]
        return array("d", [o.data for o in self._workload.outputs(self._model, inputs)])
