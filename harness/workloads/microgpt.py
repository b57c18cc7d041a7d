"""microgpt: a GPT that invents names, after Andrej Karpathy's program of that name, over any engine's Value.

Sizes, order of operations, initial numbers and optimiser are the published ones, with two differences, because a graph
must serve every name of its length. Tokens are one-hot inputs, and a product with them selects a row of a matrix. The
peak that a softmax subtracts is a Value, so its gradient, which is 0 but for rounding, is computed too.

A graph's shape depends on the number of letters, so a workload has several, over the same parameters.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from zoomgrad.datasets import names
from zoomgrad.datasets.names import TOKENS
from zoomgrad.engines.api import Unavailable, UnknownName
from zoomgrad.engines.graph.optimisers import ADAM
from zoomgrad.harness.workloads.models import Model, check_size, dot, softmax
from zoomgrad.harness.workloads.workload import Workload

STEPS = 1000
"""Steps of the published training. Over these, the learning rate falls from 0.01 towards 0."""
DEVIATION = 0.08
"""Standard deviation of the initial weights."""
EPSILON = 1e-5
SHAPE = re.compile(r"microgpt-L([1-9]\d?)-D([1-9]\d{0,6})-H([1-9]\d{0,6})-T([1-9]\d{0,6})", re.ASCII)
EXAMPLE = "microgpt-L1-D32-H4-T16"

Vector = Sequence[Any]
Matrix = list[list[Any]]


@dataclass(frozen=True)
class Sizes:
    """Builder of a model of these sizes."""

    layers: int = 1
    width: int = 16
    """Numbers in the embedding of a token."""
    heads: int = 4
    context: int = 16
    """Most positions."""

    def shapes(self) -> dict[str, tuple[int, int]]:
        """Names and shapes of the matrices, in the order of the parameters."""
        width = self.width
        square, wide, narrow = (width, width), (4 * width, width), (width, 4 * width)
        of_layer = {**dict.fromkeys(("query", "key", "value", "out"), square), "wider": wide, "narrower": narrow}
        outer = {"tokens": (TOKENS, width), "positions": (self.context, width), "read_out": (TOKENS, width)}
        layers = range(self.layers)
        return outer | {f"layers.{n}.{name}": shape for n in layers for name, shape in of_layer.items()}

    @property
    def weights(self) -> int:
        """Number of parameters."""
        return sum(rows * columns for rows, columns in self.shapes().values())

    def __call__(self, nn: Any, rng: random.Random) -> MicroGpt:
        return MicroGpt(nn.Neuron.Value, rng, self)


class MicroGpt(Model):
    """The model. It maps the one-hot tokens of all positions to the probabilities of each next token."""

    def __init__(self, value: Any, rng: random.Random, sizes: Sizes) -> None:
        def matrix(rows: int, columns: int) -> Matrix:
            return [[value(rng.gauss(0, DEVIATION)) for _ in range(columns)] for _ in range(rows)]

        self.sizes = sizes
        every = [matrix(*shape) for shape in sizes.shapes().values()]
        self.of_token, self.of_position, self.read_out, *rest = every
        self.layers = [rest[start : start + 6] for start in range(0, len(rest), 6)]
        self._parameters = [p for part in every for row in part for p in row]

    def __call__(self, tokens: Vector) -> list[Any]:
        past: list[tuple[list[Vector], list[Vector]]] = [([], []) for _ in self.layers]
        probabilities: list[Any] = []
        for position, start in enumerate(range(0, len(tokens), TOKENS)):
            probabilities += self._next(tokens[start : start + TOKENS], position, past)
        return probabilities

    def _next(self, token: Vector, position: int, past: Sequence[tuple[list[Vector], list[Vector]]]) -> list[Any]:
        """The probabilities of the token after this one. Adds this position's keys and values to the past ones."""
        chosen = [dot(column, token) for column in zip(*self.of_token)]
        x: Vector = _normal([t + p for t, p in zip(chosen, self.of_position[position])])
        for (query, key, value, out, wider, narrower), (keys, values) in zip(self.layers, past):
            normal = _normal(x)
            q = _linear(normal, query)
            keys.append(_linear(normal, key))
            values.append(_linear(normal, value))
            x = [a + b for a, b in zip(_linear(self._heard(q, keys, values), out), x)]
            hidden = [h.relu() for h in _linear(_normal(x), wider)]
            x = [a + b for a, b in zip(_linear(hidden, narrower), x)]
        return softmax(_linear(x, self.read_out))

    def _heard(self, q: Vector, keys: Sequence[Vector], values: Sequence[Vector]) -> list[Any]:
        """What each head takes from the positions so far, one head after the other."""
        size = self.sizes.width // self.sizes.heads
        heard = []
        for part in (slice(start, start + size) for start in range(0, self.sizes.width, size)):
            shares = softmax([dot(q[part], k[part]) / math.sqrt(size) for k in keys])
            heard += [dot(shares, column) for column in zip(*(v[part] for v in values))]
        return heard


def by_likelihood(outputs: Vector, targets: Vector) -> Any:
    """Mean negative log likelihood of the targets, which are one-hot."""
    starts = range(0, len(targets), TOKENS)
    losses = [-dot(targets[start : start + TOKENS], outputs[start : start + TOKENS]).log() for start in starts]
    return (1 / len(losses)) * sum(losses)


def falling_rate(update: int) -> float:
    """The learning rate, which falls linearly. After STEPS updates it is 0."""
    return 0.01 * (1 - update / STEPS) if update < STEPS else 0.0


@cache
def load(name: str) -> Workload:
    """The workload `microgpt`, or one of other sizes. Raises UnknownName and Unavailable."""
    shape = SHAPE.fullmatch(name)
    if name != "microgpt" and not shape:
        raise UnknownName("workload", name, ["microgpt", EXAMPLE])
    sizes = Sizes(*map(int, shape.groups())) if shape else Sizes()
    if sizes.width % sizes.heads:
        problem = f"{sizes.heads} heads can't share {sizes.width} dimensions"
        raise Unavailable(f"{name}: {problem}", f"Choose sizes as in {EXAMPLE}.")
    if not 2 <= sizes.context <= names.LONGEST + 1:
        problem = f"a context of {sizes.context:,} does not fit: names need 2 to {names.LONGEST + 1}"
        raise Unavailable(f"{name}: {problem}", f"Choose another T, as in {EXAMPLE}.")
    check_size(name, sizes.context * sizes.weights)
    reader = partial(names.load, context=sizes.context)
    return Workload(
        name,
        f"GPT of {sizes.layers} layer{'s' * (sizes.layers > 1)}, {sizes.width} dimensions, {sizes.heads} heads and "
        f"{sizes.context} positions, on names; Adam",
        reader,
        train_rows=29_053,
        build=sizes,
        loss_of=by_likelihood,
        rate=falling_rate,
        optimiser=ADAM,
        classes=TOKENS,
        epoch_steps=STEPS,
    )


def _linear(x: Vector, matrix: Matrix) -> list[Any]:
    return [dot(row, x) for row in matrix]


def _normal(x: Vector) -> list[Any]:
    """RMS norm."""
    scale = (dot(x, x) / len(x) + EPSILON) ** -0.5
    return [each * scale for each in x]
