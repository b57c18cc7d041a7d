"""The training contract over a Value class: row -> loss -> gradients -> update.

Two trainers keep it: one builds the graph anew for every step, as micrograd does, the other builds it once and replays
it. They share everything but how a step is taken.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from time import perf_counter

from engines.api import NonFiniteLoss, Workload
from engines.nn import Networks


class ScalarTrainer:
    """A model whose parameters are Values. Subclasses say how one step is taken."""

    def __init__(self, nn: Networks, workload: Workload) -> None:
        self._nn = nn
        self._workload = workload
        self._leaf = nn.Neuron.Value
        self.phases: Mapping[str, float] = {}
        self.restart(batch=workload.batch)

    def restart(self, *, batch: int) -> None:
        self._batch = batch
        self._model = self._workload.model(self._nn)
        self._parameters = self._model.parameters()
        self.losses = array("d")

    def train(self, steps: int) -> None:
        for _ in range(steps):
            step = len(self.losses)
            try:
                loss = self._step(self._workload.row(step))
                if not math.isfinite(loss):
                    raise NonFiniteLoss(step, loss)
            except NonFiniteLoss:
                raise
            except (ArithmeticError, ValueError) as error:
                raise NonFiniteLoss(step, error) from error
            except TypeError as error:
                # (-8.0) ** 0.5 is a complex number, which the next comparison or libm function refuses.
                if "complex" not in str(error):
                    raise
                raise NonFiniteLoss(step, error) from error
            self.losses.append(loss)
            if (step + 1) % self._batch == 0:
                self._update(self._workload.rate(step // self._batch))

    def _step(self, row: array[float]) -> float:
        """Forward and backward of one row; adds to the parameters' gradients and returns the loss."""
        raise NotImplementedError

    def _update(self, rate: float) -> None:
        batch = self._batch
        for p in self._parameters:
            p.data -= rate * p.grad / batch
            p.grad = 0.0

    def parameters(self) -> array[float]:
        return array("d", [p.data for p in self._parameters])

    def gradients(self) -> array[float]:
        return array("d", [p.grad for p in self._parameters])

    def predict(self, row: array[float]) -> array[float]:
        inputs = [self._leaf(x) for x in row]
        return array("d", [o.data for o in self._workload.outputs(self._model, inputs)])


class RebuildingTrainer(ScalarTrainer):
    """A new graph for every row."""

    def _step(self, row: array[float]) -> float:
        inputs = [self._leaf(x) for x in row]
        loss = self._workload.loss(self._model, inputs, self._workload.outputs(self._model, inputs))
        loss.backward()
        value: float = loss.data
        return value


class ReplayingTrainer(ScalarTrainer):
    """One graph for all rows: its Values know how to compute themselves again (`_forward`, `_backward`)."""

    def restart(self, *, batch: int) -> None:
        super().restart(batch=batch)
        start = perf_counter()
        self._inputs = [self._leaf(x) for x in self._workload.row(0)]
        self._outputs = self._workload.outputs(self._model, self._inputs)
        self._loss = self._workload.loss(self._model, self._inputs, self._outputs)
        order = self._loss.topo()
        parameters = set(self._parameters)
        self._fresh = [v for v in order if v not in parameters]
        self._forward = [(v._forward, v) for v in order if v._prev]
        self._backward = [(v._backward, v) for v in reversed(order) if v._prev]
        if not self.phases:
            self.phases = {"trace": perf_counter() - start}

    def _run_forward(self, row: array[float]) -> None:
        for leaf, x in zip(self._inputs, row):
            leaf.data = x
        for forward, v in self._forward:
            forward(v)

    def predict(self, row: array[float]) -> array[float]:
        self._run_forward(row)
        return array("d", [o.data for o in self._outputs])

    def _step(self, row: array[float]) -> float:
        self._run_forward(row)
        for v in self._fresh:
            v.grad = 0.0
        self._loss.grad = 1.0
        for backward, v in self._backward:
            backward(v)
        value: float = self._loss.data
        return value
