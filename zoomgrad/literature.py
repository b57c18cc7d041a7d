"""Value -> the modules that programs of the micrograd literature import. `zoomgrad exec` provides them.

micrograd.engine   Value, Max, draw_dot, counter           micrograd and "Compiling ML models to C for fun"
micrograd.nn       Module, Neuron, Layer, MLP, Value
autograd           Value                                   "Tour de micrograd"
nn                 MLP(nin, nouts, activation, step)
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from zoomgrad.engines import nn
from zoomgrad.engines.graph.draw import draw_dot
from zoomgrad.engines.straight import value_lines

MODULES = ("micrograd", "micrograd.engine", "micrograd.nn", "autograd", "nn")


def contents(value: Any, *, with_ids: bool = False) -> dict[str, dict[str, Any]]:
    """Module -> its names. with_ids: replace the class Value with a subclass whose objects have identifiers."""
    neuron, names = nn.Neuron, dict[str, Any]()
    if with_ids:
        module = sys.modules[value.__module__].__dict__
        module["Value"] = value = value_lines.identified(value)  # operators create it
        neuron = value_lines.NamedNeuron
        names["__getattr__"] = functools.partial(getattr, value)  # finds `counter` in the class
    names.update(Value=value, Max=value.max, draw_dot=draw_dot)
    networks = {**nn.bind(value, neuron)._asdict(), "Value": value}
    tour = {"MLP": nn.bind(value, mlp=TourMLP).MLP, "Value": value}
    of_micrograd = {"micrograd": {}, "micrograd.engine": names, "micrograd.nn": networks}
    return {**of_micrograd, "autograd": {"Value": value}, "nn": tour}


class TourMLP(nn.MLP):
    """As in "Tour de micrograd": layers of one activation, `tanh` or `relu`, with random biases and a rate."""

    def __init__(self, nin: int, nouts: list[int], activation: str, step: float) -> None:
        used = "relu" if activation == "relu" else "tanh"
        super().__init__(nin, nouts, last_linear=False, step=step, activation=used, random_bias=True)
