"""Neuron, Layer, MLP and the losses, written once for any Value class.

The networks are micrograd's: same parameter order, same `repr`, same order of operations. `bind` gives an engine its
own copy of the classes. Options that micrograd does not have are keyword-only.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Optional, Union

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "linear": "Linear"}
"""Activation -> its name in a neuron's `repr`."""


class Module:
    """A part of a model that has parameters."""

    def zero_grad(self) -> None:
        for p in self.parameters():
            p.grad = 0

    def parameters(self) -> list[Any]:
        return []


class Neuron(Module):
    """A weighted sum and an activation. It draws its weights before its bias, which is 0 unless `random_bias`."""

    Value: ClassVar[Any]

    def __init__(
        self, nin: int, nonlin: bool = True, *, rng: Any = random, activation: str = "relu", random_bias: bool = False
    ) -> None:
        if activation not in ACTIVATIONS:
            raise ValueError(f"there is no activation {activation!r}\n  Choose one of {', '.join(ACTIVATIONS)}.")
        new = self.Value
        if rng is random or type(rng) is random.Random:
            draw = rng.random
            # This is `rng.uniform(-1, 1)`, to the bit. The call would take most of the time to make a large model.
            self.w = [new(2.0 * draw() - 1.0) for _ in range(nin)]
        else:
            self.w = [new(rng.uniform(-1, 1)) for _ in range(nin)]
        self.b = new(rng.uniform(-1, 1) if random_bias else 0)
        self.nonlin = nonlin
        self.activation = activation if nonlin else "linear"

    def __call__(self, x: Iterable[Any]) -> Any:
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return act if self.activation == "linear" else getattr(act, self.activation)()

    def parameters(self) -> list[Any]:
        return [*self.w, self.b]

    def __repr__(self) -> str:
        return f"{ACTIVATIONS[self.activation]}Neuron({len(self.w)})"


class Layer(Module):
    """Neurons side by side. A layer of one neuron returns a Value, a larger one a list."""

    Neuron: ClassVar[type[Neuron]]

    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None:
        self.neurons = [self.Neuron(nin, **kwargs) for _ in range(nout)]

    def __call__(self, x: Sequence[Any]) -> Any:
        out = [n(x) for n in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self) -> list[Any]:
        return [p for n in self.neurons for p in n.parameters()]

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(str(n) for n in self.neurons)}]"


class MLP(Module):
    """Layers in a row; the last one is linear unless `last_linear=False`.

    step: learning rate of `update_parameters`, as in "Tour de micrograd".
    """

    Layer: ClassVar[type[Layer]]

    def __init__(
        self, nin: int, nouts: Sequence[int], *, last_linear: bool = True, step: Optional[float] = None, **kwargs: Any
    ) -> None:
        self.step = step
        last = len(nouts) - 1
        self.layers = [
            self.Layer(width, nout, nonlin=not (last_linear and number == last), **kwargs)
            for number, (width, nout) in enumerate(zip([nin, *nouts], nouts))
        ]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            # A layer of one neuron has returned a Value, which micrograd's next layer can't read.
            x = layer([x] if isinstance(x, self.Layer.Neuron.Value) else x)
        return x

    def parameters(self) -> list[Any]:
        return [p for layer in self.layers for p in layer.parameters()]

    def update_parameters(self) -> None:
        """Subtract `step` times the gradient from each parameter. Raises ValueError if there is no step."""
        if self.step is None:
            raise ValueError("the model has no step size\n  Pass it to the constructor: MLP(…, step=0.05).")
        for p in self.parameters():
            p.data += self.step * -p.grad

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(str(layer) for layer in self.layers)}]"


class Networks(NamedTuple):
    """The classes of this module bound to one Value class; an engine's `nn`."""

    Module: type[Module]
    Neuron: type[Neuron]
    Layer: type[Layer]
    MLP: type[MLP]


@functools.cache
def bind(value: Any, neuron: Any = Neuron, mlp: Any = MLP) -> Networks:
    """The networks for a Value class, the same ones for the same arguments. The others are the classes to bind."""
    neuron = type("Neuron", (neuron,), {"Value": value})
    layer = type("Layer", (Layer,), {"Neuron": neuron})
    return Networks(Module, neuron, layer, type("MLP", (mlp,), {"Layer": layer}))


def starting_parameters(workload: Any) -> list[float]:
    """The numbers with which a workload's model starts."""
    return list(workload.model(bind(float)).parameters())  # numbers are Values enough for a model that computes nothing


def as_list(outputs: Union[Any, list[Any]]) -> list[Any]:
    """A model's outputs as a list, because micrograd's `Layer` of one neuron returns a plain Value."""
    return outputs if isinstance(outputs, list) else [outputs]


def squared_error(outputs: Sequence[Any], expected: Sequence[Any]) -> Any:
    """Sum of the squared errors, not their mean."""
    return sum((o - t) ** 2 for o, t in zip(outputs, expected))


def hinge(scores: Sequence[Any], labels: Sequence[Any]) -> Any:
    """Mean of `relu(1 - label * score)`, with labels -1 or 1 and the order of operations of micrograd's demo."""
    losses = [(1 + -y * s).relu() for s, y in zip(scores, labels)]
    return sum(losses) * (1.0 / len(losses))


def l2(parameters: Iterable[Any], alpha: float) -> Any:
    """`alpha` times the sum of squares, as in micrograd's demo."""
    return alpha * sum(p * p for p in parameters)


def cross_entropy(outputs: Sequence[Any], expected: Sequence[Any]) -> Any:
    """Softmax and negative log likelihood as in "Compiling ML models to C for fun", including the epsilon.

    expected: one-hot inputs, so that one graph serves every label.
    """
    peak = functools.reduce(lambda a, b: a.max(b), outputs)
    exps = [(o - peak).exp() for o in outputs]
    total = sum(exps)
    return -sum(t * (e / total + 0.0001).log() for t, e in zip(expected, exps))
