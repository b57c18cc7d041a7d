"""`jax` and `jax-scan`: value_and_grad of a loss under jit, in one call for each batch or in one scan over all."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.peers.models.layout import LayeredModel, flat, layers, rows_of
from zoomgrad.engines.peers.peer import Task

ACTIVATIONS = {"relu": jax.nn.relu, "tanh": jnp.tanh}


class JaxModel(LayeredModel):
    """An MLP with one call for each batch. rates: an example of what a call of `train` passes."""

    def __init__(self, task: Task, clock: Clock, rates: Any = 0.0) -> None:
        with clock.phase("load"):
            jax.config.update("jax_enable_x64", True)
            jax.config.update("jax_enable_compilation_cache", False)
            # Calls that return at once are carried out by another thread.
            jax.config.update("jax_cpu_enable_async_dispatch", task.threads > 1)
            self.task = task
            self.x, self.y = (jnp.array(rows_of(column)) for column in (task.features, task.targets))
            self.step = jax.jit(self.train, static_argnames="batch", donate_argnums=0)
            self.some_rows = jax.jit(self.slopes, static_argnames="rows")
            self.restart(task.start)
        # Later calls find the result in jit's own cache.
        with clock.phase("trace"):
            traced = self.step.trace(self.layers, self.x, self.y, 0, rates, batch=task.batch)
        with clock.phase("lower"):
            lowered = traced.lower()
        with clock.phase("compile"):
            lowered.compile()

    def outputs(self, layers: Any, values: Any) -> Any:
        network = self.task.network
        for number, (w, b) in enumerate(layers):
            values = values @ w + b
            if network.activates(number):
                values = ACTIVATIONS[network.activation](values)
        return values

    def losses(self, layers: Any, x: Any, y: Any) -> Any:
        """Loss of each row."""
        values = x.astype(jnp.float64)
        if x.dtype == jnp.uint8:
            values = values / self.task.features.divisor
        outputs = self.outputs(layers, values)
        if self.task.network.loss == "squared_error":
            return jnp.square(outputs - y.astype(jnp.float64)).sum(axis=1)
        labels = y.astype("int32")[:, jnp.newaxis]
        of_label = jnp.take_along_axis(jax.nn.softmax(outputs), labels, axis=1)[:, 0]
        return -jnp.log(of_label + 0.0001)

    def slopes(self, layers: Any, x: Any, y: Any, first: Any, rows: int) -> tuple[Any, Any]:
        """Sum of the rows' gradients, and the loss of each row."""

        def total(layers: Any, x: Any, y: Any) -> tuple[Any, Any]:
            losses = self.losses(layers, x, y)
            return losses.sum(), losses

        x, y = (lax.dynamic_slice_in_dim(data, first, rows) for data in (x, y))
        return jax.grad(total, has_aux=True)(layers, x, y)  # type: ignore[no-any-return]

    def train(self, layers: Any, x: Any, y: Any, first: Any, rate: Any, *, batch: int) -> tuple[Any, Any]:
        slopes, losses = self.slopes(layers, x, y, first, batch)
        step = rate / batch
        return jax.tree.map(lambda parameter, slope: parameter - step * slope, layers, slopes), losses

    def restart(self, parameters: Any) -> None:
        self.layers = jax.tree.map(jnp.array, layers(self.task.network.shape, parameters))

    def whole_batch(self, first: int, batch: int, rate: float) -> Any:
        self.layers, losses = self.step(self.layers, self.x, self.y, first, rate, batch=batch)
        return losses

    def gradient(self, first: int, rows: int) -> tuple[Any, Any]:
        slopes, losses = self.some_rows(self.layers, self.x, self.y, first, rows=rows)
        return losses, flat(slopes)

    def predict(self, features: array[float]) -> Any:
        return self.outputs(self.layers, jnp.asarray([features], jnp.float64))[0].tolist()


class ScanModel(JaxModel):
    """The same with one call for all batches in a row."""

    def __init__(self, task: Task, clock: Clock) -> None:
        super().__init__(task, clock, np.zeros(task.features.rows // task.batch))

    def train(self, layers: Any, x: Any, y: Any, first: Any, rates: Any, *, batch: int) -> tuple[Any, Any]:
        def step(layers: Any, of_batch: tuple[Any, Any]) -> tuple[Any, Any]:
            return super(ScanModel, self).train(layers, x, y, *of_batch, batch=batch)

        layers, losses = lax.scan(step, layers, (first + batch * jnp.arange(len(rates)), rates))
        return layers, losses.ravel()

    def whole_batches(self, first: int, batch: int, rates: Sequence[float]) -> list[Any]:
        some = np.asarray(rates, np.float64)
        self.layers, losses = self.step(self.layers, self.x, self.y, first, some, batch=batch)
        return [losses]
