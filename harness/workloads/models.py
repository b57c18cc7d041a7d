"""Models, each written once over an engine's `nn`, as a user of micrograd would write it.

The plain MLP comes first, then graphs with loops of other shapes, and last an MLP in shuffled order and random
operations. A model has `parameters()` and is called with the features of one sample.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from zoomgrad.engines.api import Unavailable

Build = Callable[[Any, random.Random], Any]
"""(the engine's `nn`, generator) -> a new model with its starting parameters."""

MOST_WEIGHTS = 10_000_000
"""Limit of a model's weights, over all positions of a step. This many take several gigabytes."""

GRAPH_SEED = 1337
"""Seed of a graph's random structure, which must not change with the seed of the parameters."""


def check_size(name: str, weights: int) -> None:
    """Raise Unavailable for too many weights, over all positions of a step."""
    if weights > MOST_WEIGHTS:
        problem = f"its graph would have {weights:,} weights; the limit is {MOST_WEIGHTS:,}"
        raise Unavailable(f"{name}: {problem}", "Use smaller sizes.")


@dataclass(frozen=True)
class Mlp:
    """Builder of micrograd's MLP."""

    shape: tuple[int, ...]
    """Layer sizes, inputs first."""
    activation: str = "relu"
    last_linear: bool = True
    random_bias: bool = False

    def __call__(self, nn: Any, rng: random.Random) -> Any:
        return nn.MLP(
            self.shape[0],
            list(self.shape[1:]),
            rng=rng,
            activation=self.activation,
            last_linear=self.last_linear,
            random_bias=self.random_bias,
        )


class Model:
    """Model of neurons and layers. Its parameters are in the order of its parts, unless a subclass sets them."""

    def __init__(self, *parts: Any) -> None:
        self._parameters = [p for part in parts for p in part.parameters()]

    def parameters(self) -> list[Any]:
        return self._parameters


class Recurrent(Model):
    """Elman net over a series: a tanh layer that also reads its previous state. A read-out follows the last state."""

    def __init__(self, nn: Any, rng: random.Random, *, inputs: int, units: int) -> None:
        self.inputs = inputs
        # Twice the usual scale, so that a state does not fade within 20 steps.
        self.layer = scaled(2.0, nn.Layer(inputs + units, units, rng=rng, activation="tanh"))
        self.read_out = scaled(1.0, nn.Neuron(units, False, rng=rng))
        super().__init__(self.layer, self.read_out)

    def __call__(self, series: Sequence[Any]) -> Any:
        # The first step has no state: the neurons ignore the weights that have no input.
        state: list[Any] = []
        for now in _chunks(series, self.inputs):
            state = self.layer([*now, *state])
        return self.read_out(state)


class Convolution(Model):
    """Filters that slide over windows of the input, relu, and a linear layer over all positions."""

    def __init__(
        self, nn: Any, rng: random.Random, *, windows: Sequence[Sequence[int]], filters: int, outputs: int = 1
    ) -> None:
        self.windows = windows
        self.filters = scaled(1.0, nn.Layer(len(windows[0]), filters, rng=rng))
        self.read_out = scaled(1.0, nn.Layer(len(windows) * filters, outputs, nonlin=False, rng=rng))
        super().__init__(self.filters, self.read_out)

    def __call__(self, inputs: Sequence[Any]) -> Any:
        return self.read_out([y for window in self.windows for y in self.filters([inputs[index] for index in window])])


def windows_1d(channels: int, length: int, width: int) -> list[list[int]]:
    """Indices of the inputs of each position in a signal, channel by channel."""
    starts = range(0, channels * length, length)
    return [[start + place + i for start in starts for i in range(width)] for place in range(length - width + 1)]


def windows_2d(side: int, width: int) -> list[list[int]]:
    """Indices of the inputs of each position in a square image, row by row."""
    corners = itertools.product(range(side - width + 1), repeat=2)
    return [
        [(top + i) * side + left + j for i, j in itertools.product(range(width), repeat=2)] for top, left in corners
    ]


class Attention(Model):
    """One attention head over a sequence of tokens, and a linear read-out of every token's result."""

    def __init__(self, nn: Any, rng: random.Random, *, tokens: int, width: int) -> None:
        self.width = width
        self.query, self.key, self.value = (
            scaled(1.0, nn.Layer(width, width, nonlin=False, rng=rng)) for _ in range(3)
        )
        self.read_out = scaled(1.0, nn.Neuron(tokens * width, False, rng=rng))
        super().__init__(self.query, self.key, self.value, self.read_out)

    def __call__(self, sequence: Sequence[Any]) -> Any:
        tokens = _chunks(sequence, self.width)
        queries, keys, values = ([part(token) for token in tokens] for part in (self.query, self.key, self.value))
        scale = 1.0 / math.sqrt(self.width)
        heard: list[Any] = []
        for query in queries:
            shares = softmax([dot(query, key) * scale for key in keys])
            heard += [dot(shares, column) for column in zip(*values)]
        return self.read_out(heard)


class Polynomial(Model):
    """Polynomial in two inputs. Each power is computed once and shared by all terms that contain it."""

    def __init__(self, nn: Any, rng: random.Random, *, degree: int) -> None:
        self.degree = degree
        self.exponents = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
        self._parameters = [nn.Neuron.Value(rng.uniform(-1, 1)) for _ in self.exponents]

    def __call__(self, point: Sequence[Any]) -> Any:
        x, y = ([None, v, *(v**k for k in range(2, self.degree + 1))] for v in point)
        terms = []
        for (i, j), term in zip(self.exponents, self._parameters):
            for power in (x[i], y[j]):
                term = term if power is None else term * power
            terms.append(term)
        return sum(terms)


class Shuffled(Model):
    """MLP whose neurons are made in shuffled order across layers, and add up their inputs in shuffled order."""

    def __init__(self, nn: Any, rng: random.Random, *, shape: Sequence[int]) -> None:
        order = random.Random(GRAPH_SEED)
        places = [(layer, unit) for layer, units in enumerate(shape[1:]) for unit in range(units)]
        order.shuffle(places)
        linear = len(shape) - 2
        made = {(layer, unit): nn.Neuron(shape[layer], layer != linear, rng=rng) for layer, unit in places}
        self.layers = [[made[layer, unit] for unit in range(units)] for layer, units in enumerate(shape[1:])]
        self.heard = [order.sample(range(units), units) for units in shape[:-1]]
        super().__init__(*made.values())

    def __call__(self, x: Sequence[Any]) -> Any:
        for layer, heard in zip(self.layers, self.heard):
            shuffled = [x[index] for index in heard]
            x = [neuron(shuffled) for neuron in layer]
        return x


OPERATIONS: dict[Callable[[Any, Any], Any], int] = {
    lambda a, b: (a + b).tanh(): 6,  # which keeps all values small
    lambda a, b: a * b: 6,
    lambda a, b: a.max(b): 2,
    lambda a, b: a.relu(): 1,
    lambda a, b: a**2: 1,
}
"""Operation on two Values, of which it may ignore the second -> its share."""


class RandomDag(Model):
    """Random operations over inputs and weights, without loops to recover, and a linear read-out of unread values."""

    def __init__(self, nn: Any, rng: random.Random, *, inputs: int, weights: int, operations: int) -> None:
        order = random.Random(GRAPH_SEED)
        self.applied = order.choices([*OPERATIONS], [*OPERATIONS.values()], k=operations)
        self.operands, self.unread = [], list(range(inputs + weights))
        for made in range(inputs + weights, inputs + weights + operations):
            # The left operand is a value that none has read yet, so that every result is used.
            left = self.unread.pop(order.randrange(len(self.unread)))
            self.operands.append((left, order.randrange(made)))
            self.unread.append(made)
        self.weights = [nn.Neuron.Value(rng.uniform(-1, 1)) for _ in range(weights)]
        self.read_out = scaled(1.0, nn.Neuron(len(self.unread), False, rng=rng))
        self._parameters = [*self.weights, *self.read_out.parameters()]

    def __call__(self, inputs: Sequence[Any]) -> Any:
        values = [*inputs, *self.weights]
        for apply, (left, right) in zip(self.applied, self.operands):
            values.append(apply(values[left], values[right]))
        return self.read_out([values[index] for index in self.unread])


def scaled(factor: float, part: Any) -> Any:
    """Scale the weights of a neuron or layer by factor / √inputs. Without this, sums over many inputs get too large."""
    for neuron in getattr(part, "neurons", [part]):
        for weight in neuron.w:
            # Unlike a power, a square root gives the same bits on every machine.
            weight.data *= factor / math.sqrt(len(neuron.w))
    return part


def _chunks(values: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Sum of products."""
    return sum(x * y for x, y in zip(a, b))


def softmax(scores: Sequence[Any]) -> list[Any]:
    """Shares of 1 in proportion to exponentials, over the largest score."""
    peak = functools.reduce(lambda a, b: a.max(b), scores)
    exps = [(score - peak).exp() for score in scores]
    total = sum(exps)
    return [e / total for e in exps]
