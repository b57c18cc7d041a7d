"""Random graphs that tempt the recovery of loops into a wrong order, with their numbers and training schedules.

Hypothesis draws only their sizes and a seed for everything else. When it drew the structure itself, it repeated parts
of earlier examples, and five of six graphs were nearly the same.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from typing import Any, Callable, NamedTuple, Optional

from hypothesis import strategies as st

from tests.engines.graphs import Graph

SIZES = (1, 2, 3, 4, 5, 8, 9)
"""Sizes near the widths of vectors."""
SPECIAL = (0.0, -0.0, 1.0, 5e-324, -1e-310)
WILD = (*SPECIAL, math.inf, -math.inf, math.nan, 1e300, -1e200)


class Schedule(NamedTuple):
    """Numbers of steps, call by call, so that calls end while updates wait and batches are partial."""

    batch: int
    rates: tuple[float, ...]
    calls: tuple[int, ...]


class Case(NamedTuple):
    """A graph, the kinds of its leaves, output indices, rows of inputs, extreme numbers for all leaves, a schedule."""

    graph: Graph
    kinds: tuple[str, ...]
    outputs: tuple[int, ...]
    rows: list[list[float]]
    wild: list[float]
    schedule: Schedule

    def __repr__(self):
        return f"{self.graph!r}\n  {self.rows}\n  {self.wild}\n  {self.kinds}\n  {self.outputs} {self.schedule}"


def case(rng, name, kinds, build, outputs):
    graph = Graph(name, tuple(numbers(rng, len(kinds))), build)
    rows = [numbers(rng, kinds.count("input")) for _ in range(rng.randint(1, 3))]
    wild = numbers(rng, len(kinds), WILD)
    wild = [x if kind == "constant" else y for x, y, kind in zip(graph.numbers, wild, kinds)]
    rates = tuple(rng.choice([0.1, 0.037, -0.3, 1.0, 0.0]) for _ in range(24))
    calls = tuple(rng.choice([0, 1, 2, 3, 5, 8]) for _ in range(rng.randint(1, 3)))
    return Case(graph, kinds, outputs, rows, wild, Schedule(rng.choice([1, 3, 5]), rates, calls))


def numbers(rng, count, special=SPECIAL):
    """Draw `count` numbers with all their digits, so that sums round. A few are special; sometimes most are zero."""
    drawn = [rng.gauss(0.0, 0.7) for _ in range(count)]
    if rng.random() < 0.2:
        drawn = [x if at % 3 == 0 else 0.0 for at, x in enumerate(drawn)]
    for at in range(count):
        if rng.random() < rng.choice([0.0, 0.0, 0.1]):
            drawn[at] = rng.choice(special)
    return drawn


def added(terms, association):
    """Return the sum of the terms: from the left, as `sum` does it, from the right, or in pairs."""
    terms = list(terms)
    if association == "left":
        return functools.reduce(lambda a, b: a + b, terms)
    if association == "sum":
        return sum(terms)
    if association == "right":
        return functools.reduce(lambda a, b: b + a, reversed(terms))
    while len(terms) > 1:
        terms = [added(terms[at : at + 2], "left") for at in range(0, len(terms), 2)]
    return terms[0]


ASSOCIATIONS = ("left", "left", "left", "sum", "right", "pairs")

# --- networks ----------------------------------------------------------------------------------------------------


class Neuron(NamedTuple):
    """A neuron: which weight multiplies which input, term by term."""

    weights: tuple[int, ...]
    heard: tuple[int, ...]
    bias: Optional[int]
    bias_comes_first: bool
    weights_come_first: bool
    association: str
    activation: str

    def __call__(self, p, x):
        pairs = [(p[weight], x[index]) for weight, index in zip(self.weights, self.heard)]
        terms = [w * v if self.weights_come_first else v * w for w, v in pairs]
        if self.bias is not None:
            terms.insert(0 if self.bias_comes_first else len(terms), p[self.bias])
        total = added(terms, self.association)
        if self.activation == "square":
            return total * total
        return total if self.activation == "linear" else getattr(total, self.activation)()


ACTIVATIONS = ("relu", "relu", "tanh", "linear", "square")


def layer(rng, inputs, units, made, plain):
    """Return neurons of the same structure, except perhaps one, and the number of weights so far.

    made: number of weights in earlier layers, which this one may reuse.
    plain: reuse none, and make all neurons the same.
    """
    count = inputs * units
    order = rng.choice(["by neuron", "by input", *["shuffled", "tied"] * (not plain)])
    weights = list(range(count) if order == "tied" and made >= count else range(made, made + count))
    if order == "shuffled":
        rng.shuffle(weights)
    rows = [weights[n::units] if order == "by input" else weights[n * inputs : (n + 1) * inputs] for n in range(units)]
    if not plain and rng.random() < 0.3:  # the same weight twice
        for _ in range(rng.randint(1, 3)):
            rng.choice(rows)[rng.randrange(inputs)] = rng.choice(weights)
    made = max(made, weights[-1] + 1, max(weights) + 1)
    heard = rng.choice([list(range(inputs)), list(range(inputs))[::-1], rng.sample(range(inputs), inputs)])
    biases = rng.choice([0, units, *[1] * (not plain)])
    alike = Neuron((), tuple(heard), None, rng.random() < 0.7, True, rng.choice(ASSOCIATIONS), rng.choice(ACTIVATIONS))
    neurons = [
        alike._replace(weights=tuple(row), bias=made + n % biases if biases else None) for n, row in enumerate(rows)
    ]
    if not plain and rng.random() < 0.4:
        rng.shuffle(heard)
        odd = rng.choice(
            [
                {"activation": rng.choice(ACTIVATIONS)},
                {"association": rng.choice(ASSOCIATIONS)},
                {"heard": tuple(heard)},
                {"bias": rng.choice([None, 0])},
                {"weights_come_first": False},
            ]
        )
        at = rng.randrange(units)
        neurons[at] = neurons[at]._replace(**odd)
    return neurons, made + biases


PENALTIES: dict[str, Callable[[Any], Any]] = {
    "none": lambda p: 0.0,
    "squares": lambda p: sum(v * v for v in p) * 1e-2,
    "powers": lambda p: sum(v**2 for v in p) * 1e-2,
    "neighbours": lambda p: sum((a * b for a, b in zip(p, p[1:])), p[0] * 0.5),
    "mirrored": lambda p: sum(a * b for a, b in zip(p, p[::-1])),
    "plain": sum,
    "bounded": lambda p: sum((v * 0.5).tanh() for v in p),
}
"""Terms of the loss over the parameters themselves, whose updates therefore read parameters."""


def shares(outputs, targets):
    exps = [o.tanh().exp() for o in outputs]
    total = sum(exps)
    return -sum(t * (e / total + 0.0001).log() for t, e in zip(targets, exps))


LOSSES = {
    "squares": lambda outputs, targets: sum((o - t) ** 2 for o, t in zip(outputs, targets)),
    "products": lambda outputs, targets: sum(d * d for d in [o - t for o, t in zip(outputs, targets)]),
    "added": lambda outputs, targets: sum(o * t for o, t in zip(outputs, targets)),
    "largest": lambda outputs, targets: functools.reduce(
        lambda a, b: a.max(b), map(lambda o, t: o - t, outputs, targets)
    ),
    "shares": shares,
}


def network(rng, depth, largest, plain):
    """Return a case with layers whose weights are in any order, tied or not, over several samples in one graph."""
    inputs, samples = rng.randint(1, 5), 1 if plain else rng.choice([1, 1, 2, 3])
    layers, made, width = [], 0, inputs
    for _ in range(depth):
        units = min(largest, rng.choice(SIZES))
        neurons, made = layer(rng, width, units, made, plain)
        layers.append(neurons)
        width = units
    loss, penalty = rng.choice(list(LOSSES)), "none" if plain else rng.choice(["none"] * 6 + list(PENALTIES))
    inputs_too = rng.choice(["", "", "shifted", "gated", "skip"])
    also = rng.choice(["", "parameters", "hidden"])
    features, columns = samples * inputs, samples * (inputs + width)

    def build(Value, leaves):
        x, targets, p = leaves[:features], leaves[features:columns], leaves[columns:]
        # These outputs depend on parameters only. As lanes of one loop, they outnumber the neurons of any layer.
        seen = [v * 2.0 for v in p] if also == "parameters" else []
        total = Value(0.0)
        for sample in range(samples):
            state = row = x[sample * inputs : (sample + 1) * inputs]
            if inputs_too == "shifted":  # by parameters that are in no layer, so their gradients are separate sums
                state = [v + by for v, by in zip(row, p[made:])]
            for neurons in layers:
                state = [neuron(p, state) for neuron in neurons]
                if also == "hidden":
                    seen += state
            if inputs_too == "gated":
                total = total + sum((v * by).tanh() for v, by in zip(row, p[made:]))
            if inputs_too == "skip":
                state = [v * row[0] for v in state]
            total = total + LOSSES[loss](state, targets[sample * width : (sample + 1) * width])
        return [*seen, *state, total + PENALTIES[penalty](p)]

    count = made + inputs * (inputs_too in ("shifted", "gated"))
    name = f"network({inputs=}, {samples=}, {layers}, {loss=}, {penalty=}, {inputs_too=}, {also=})"
    outputs = range(count) if also == "parameters" else rng.sample(range(99), rng.randint(0, 3))
    return case(rng, name, ("input",) * columns + ("parameter",) * count, build, tuple(outputs))


# --- vectors -----------------------------------------------------------------------------------------------------

UNARY = {
    "relu": lambda a: a.relu(),
    "tanh": lambda a: a.tanh(),
    "half": lambda a: a * 0.5,
    "plus": lambda a: 1.5 + a,
    "minus": lambda a: -a,
    "square": lambda a: a**2,
}
BINARY = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "max": lambda a, b: a.max(b), "sub": lambda a, b: a - b}
WHOLE = ("scan", "product scan", "spread", "outer", "sum", "sum")


class Step(NamedTuple):
    """One operation on whole registers: lane by lane with the second operand's lanes shifted, or across lanes."""

    op: str
    first: int
    others: tuple[int, ...]
    shift: int
    backwards: bool
    association: str

    def __call__(self, registers):
        a, b = registers[self.first], registers[self.others[0]]
        b = [b[(at + self.shift) % len(b)] for at in range(len(a))]
        b = b[::-1] if self.backwards else b
        if self.op in UNARY:
            return [UNARY[self.op](v) for v in a]
        if self.op in BINARY:
            return [BINARY[self.op](v, w) for v, w in zip(a, b)]
        if self.op == "scan":  # each lane needs the previous one
            return list(itertools.accumulate(a, lambda v, w: v + w))
        if self.op == "product scan":
            return list(itertools.accumulate(zip(a, b), lambda v, w: v * w[0] + w[1], initial=a[0]))[1:]
        if self.op == "spread":  # each lane needs all
            total = added(b, self.association)
            return [v * total for v in a]
        if self.op == "outer":
            return [added([v * w for w in b], self.association) for v in a]
        rows = [a, b, *(registers[other] for other in self.others[1:])]
        return [added(column, self.association) for column in zip(*rows)]


def vector(rng, count, lanes):
    """Return a case over whole registers, with chains that cross and sums that feed sums."""
    leaves = ["parameter", *rng.choices(["input", "parameter", "constant"], k=rng.randint(0, 3))]
    steps = []
    for made in range(len(leaves), len(leaves) + count):
        op = rng.choice([*UNARY, *BINARY, *BINARY, *WHOLE])
        others = tuple(rng.choices(range(made), k=rng.randint(1, 4)))
        first = rng.choice([made - 1, rng.randrange(made)])
        steps.append(Step(op, first, others, rng.randint(0, 3), rng.random() < 0.3, rng.choice(ASSOCIATIONS)))
    summed = rng.sample(range(len(leaves) + count), rng.randint(0, 2))
    association = rng.choice(ASSOCIATIONS)

    def build(Value, given):
        registers = [list(given[at * lanes : (at + 1) * lanes]) for at in range(len(leaves))]
        for step in steps:
            registers.append(step(registers))
        totals = [added(registers[at], association) for at in [len(registers) - 1, *summed]]
        return [*(v for register in registers for v in register), added(totals, association)]

    name = f"vectors({lanes=}, {leaves}, {steps}, {summed=}, {association=})"
    kinds = tuple(kind for kind in [*leaves, "input"] for _ in range(lanes))[: len(leaves) * lanes]
    return case(rng, name, kinds, build, tuple(rng.sample(range(99), rng.randint(0, 3))))


# --- networks at several positions ---------------------------------------------------------------------------------


def attention(states):
    scores = [sum(a * b for a, b in zip(states[-1], state)) for state in states]
    peak = functools.reduce(lambda a, b: a.max(b), scores)
    exps = [(score - peak).exp() for score in scores]
    total = sum(exps)
    return [sum(e / total * v for e, v in zip(exps, column)) for column in zip(*states)]


MIXES = {
    "sum": lambda states: [sum(column) for column in zip(*states)],
    "largest": lambda states: [functools.reduce(lambda a, b: a.max(b), column) for column in zip(*states)],
    "product": lambda states: [functools.reduce(lambda a, b: (a * b).tanh(), column) for column in zip(*states)],
    "attention": attention,
}
"""What a position computes from its state, from the last position's, and from those of all earlier ones."""


def text_network(rng, layers, length):
    """Return a case with layers of shared weights at each position; between them, positions see the earlier ones."""
    width, recurrent, skips = rng.randint(1, 4), rng.random() < 0.3, rng.random() < 0.5
    mixes = [rng.choice([*MIXES, "attention"]) for _ in range(layers)]
    count = layers * width * width + length * width

    def layer(p, at, x):
        rows = [p[(at * width + n) * width : (at * width + n + 1) * width] for n in range(width)]
        return [sum(w * v for w, v in zip(row, x)).tanh() for row in rows]

    def build(Value, leaves):
        x, p = leaves[: length * width], leaves[length * width :]
        own = p[layers * width * width :]
        states = [[a + b for a, b in zip(x[t * width :], own[t * width : (t + 1) * width])] for t in range(length)]
        for at, mix in enumerate(mixes):
            made = []
            for t in range(length):
                seen = [*made, states[t]] if recurrent else states[: t + 1]
                mixed = layer(p, at, MIXES[mix](seen))
                made.append([a + b for a, b in zip(mixed, states[t])] if skips else mixed)
            states = made
        losses = [sum(v * v for v in state) for state in states]
        return [*(v for state in states for v in state), sum(losses) * (1 / length)]

    kinds = ("input",) * (length * width) + ("parameter",) * count
    name = f"text_network({layers=}, {length=}, {width=}, {recurrent=}, {skips=}, {mixes=})"
    return case(rng, name, kinds, build, tuple(rng.sample(range(99), rng.randint(0, 3))))


# --- strategies --------------------------------------------------------------------------------------------------

seeds = st.integers(0, 2**40).map(random.Random)
networks = st.builds(network, seeds, st.integers(1, 3), st.sampled_from(SIZES[::-1]), st.just(False))
plain_networks = st.builds(network, seeds, st.integers(1, 3), st.sampled_from(SIZES[::-1]), st.just(True))
vectors = st.builds(vector, seeds, st.integers(1, 8), st.sampled_from(SIZES[1:]))
texts = st.builds(text_network, seeds, st.integers(1, 2), st.integers(1, 6))
GRAPHS = {"networks": networks, "plain networks": plain_networks, "vectors": vectors, "texts": texts}
