"""`casadi`: a graph of SX scalars and its gradient in reverse mode, run by CasADi's virtual machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.peers.models.layout import ScalarModel

# At 0, the derivative of `fmax` would be a half.
ACTIVATIONS = {"relu": lambda z: (z > 0) * z, "tanh": casadi.tanh}


class CasadiModel(ScalarModel):
    """An MLP as a casadi.Function, called through its buffers, which copy nothing."""

    def compiled(self, clock: Clock) -> Callable[[], Any]:
        with clock.phase("trace"):
            p, x, y = (casadi.SX.sym("", len(part)) for part in (self.p, self.features, self.targets))
            outputs = self.outputs_of(p, x)
            loss = self.loss_of(outputs, y)
        with clock.phase("lower"):
            slopes = casadi.gradient(loss, p)
        with clock.phase("compile"):
            buffers, call = casadi.Function("step", [p, x, y], [loss, slopes, outputs]).buffer()
        for place, part in enumerate((self.p, self.features, self.targets)):
            buffers.set_arg(place, memoryview(part))
        for place, part in enumerate((self.loss, self.slopes, self.outputs)):
            buffers.set_res(place, memoryview(part))
        self.buffers = buffers  # `call` does not keep it alive
        return call  # type: ignore[no-any-return]

    def outputs_of(self, p: Any, values: Any) -> Any:
        network, end = self.task.network, 0
        for number, (nin, nout) in enumerate(zip(network.shape, network.shape[1:])):
            start, end = end, end + nout * (nin + 1)
            neurons = casadi.reshape(p[start:end], nin + 1, nout)  # a column for each: weights, then the bias
            values = neurons[:-1, :].T @ values + neurons[-1, :].T
            if network.activates(number):
                values = ACTIVATIONS[network.activation](values)
        return values

    def loss_of(self, outputs: Any, y: Any) -> Any:
        if self.task.network.loss == "squared_error":
            return casadi.sumsqr(outputs - y)
        e = casadi.exp(outputs - casadi.mmax(outputs))
        return -casadi.dot(y, casadi.log(e / casadi.sum1(e) + 0.0001))
