"""`heyoka`: symbolic expressions and their gradient in reverse mode, compiled by LLVM in compact mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import heyoka

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.peers.models.layout import ScalarModel

ACTIVATIONS = {"relu": heyoka.relu, "tanh": heyoka.tanh}


class HeyokaModel(ScalarModel):
    """An MLP as a compiled function. Without compact mode, a graph of this size would compile for hours."""

    def compiled(self, clock: Clock) -> Callable[[], Any]:
        with clock.phase("trace"):
            names = heyoka.make_vars(*(f"v{number}" for number in range(len(self.arguments))))
            ends = len(self.p), len(self.p) + len(self.features)
            outputs = self.outputs_of(names[: ends[0]], names[ends[0] : ends[1]])
            loss = self.loss_of(outputs, names[ends[1] :])
        with clock.phase("lower"):
            slopes = heyoka.diff_tensors([loss], diff_args=names[: ends[0]]).gradient
        with clock.phase("compile"):
            call = heyoka.cfunc([loss, *slopes, *outputs], names, compact_mode=True)
        return partial(call, self.arguments, outputs=self.results)

    def outputs_of(self, p: list[Any], values: list[Any]) -> list[Any]:
        network, neurons = self.task.network, iter(p)
        for number, nout in enumerate(network.shape[1:]):
            activate = ACTIVATIONS[network.activation] if network.activates(number) else lambda z: z
            values = [
                activate(heyoka.sum([*(next(neurons) * value for value in values), next(neurons)])) for _ in range(nout)
            ]
        return values

    def loss_of(self, outputs: list[Any], y: list[Any]) -> Any:
        if self.task.network.loss == "squared_error":
            return heyoka.sum([(output - target) ** 2.0 for output, target in zip(outputs, y)])
        most = reduce(lambda a, b: heyoka.select(heyoka.gt(a, b), a, b), outputs)
        e = [heyoka.exp(output - most) for output in outputs]
        total = heyoka.sum(e)
        return heyoka.sum([-target * heyoka.log(each / total + 0.0001) for target, each in zip(y, e)])
