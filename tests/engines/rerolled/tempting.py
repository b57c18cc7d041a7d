"""Graphs built to tempt the recovery of loops into a wrong order: what is drawn is data, so that it can be read."""

from __future__ import annotations

import functools
import itertools
import math
import random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.engines.graphs import Graph

SIZES = st.sampled_from([1, 2, 3, 4, 5, 8, 9])
"""Around the widths of vectors."""

SPECIAL = (0.0, -0.0, 1.0, 5e-324, -1e-310)
WILD = (*SPECIAL, math.inf, -math.inf, math.nan, 1e300, -1e200)


@st.composite
def numbers(draw, count, special=SPECIAL):
    """So many, with all their digits, so that sums round; and at some places special ones."""
    rng = random.Random(draw(st.integers(0, 999)))
    drawn = [rng.gauss(0.0, 0.7) for _ in range(count)]
    for at, number in draw(st.lists(st.tuples(st.integers(0, 299), st.sampled_from(special)), max_size=4)):
        if at < count:
            drawn[at] = number
    if draw(st.sampled_from([False, False, False, True])):
        drawn = [drawn[at] if at % 3 else special[0] for at in range(count)]
    return drawn


class Case(NamedTuple):
    """A graph, what its leaves are, and rows of inputs."""

    graph: Graph
    kinds: tuple[str, ...]
    rows: list[list[float]]
    wild: list[list[float]]
    """Rows for all leaves, to run forward and back."""
    outputs: tuple[int, ...]

    def __repr__(self):
        return f"Case({self.graph!r},\n  {self.kinds},\n  {self.rows}, {self.wild}, {self.outputs})"


def added(terms, association):
    """Their sum: from the left, from the right, in pairs, or the first half and the rest."""
    terms = list(terms)
    if association == "left":
        return functools.reduce(lambda a, b: a + b, terms)
    if association == "sum":
        return sum(terms)
    if association == "right":
        return functools.reduce(lambda a, b: b + a, reversed(terms))
    while len(terms) > 1:
        pairs = [terms[at : at + 2] for at in range(0, len(terms), 2)]
        terms = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0]


ASSOCIATIONS = st.sampled_from(["left", "left", "left", "sum", "right", "pairs"])


# --- networks ----------------------------------------------------------------------------------------------------


class Neuron(NamedTuple):
    """Which weight meets which input, term by term."""

    weights: tuple[int, ...]
    heard: tuple[int, ...]
    bias: Any
    """An index, or None."""
    bias_comes: str
    association: str
    activation: str
    weight_first: bool

    def __call__(self, p, x):
        terms = [p[w] * x[i] if self.weight_first else x[i] * p[w] for w, i in zip(self.weights, self.heard)]
        if self.bias is not None:
            terms.insert(0 if self.bias_comes == "first" else len(terms), p[self.bias])
        total = added(terms, self.association)
        if self.activation == "square":
            return total * total
        return total if self.activation == "linear" else getattr(total, self.activation)()


ACTIVATIONS = st.sampled_from(["relu", "relu", "tanh", "linear", "square"])


@st.composite
def layers(draw, inputs, units, made, plain):
    """Neurons that are alike, but for one of them perhaps; and how many weights there are now.

    made: weights that layers before have, which this one may use again. plain: it does not, and all are alike.
    """
    count = inputs * units
    order = draw(st.sampled_from(["by neuron", "by input", *["shuffled", "tied"] * (not plain)]))
    if order == "tied" and made < count:
        order = "by neuron"
    weights = list(range(count) if order == "tied" else range(made, made + count))
    if order == "shuffled":
        weights = draw(st.permutations(weights))
    rows = [weights[n::units] if order == "by input" else weights[n * inputs : (n + 1) * inputs] for n in range(units)]
    for _ in range(0 if plain else draw(st.sampled_from([0, 0, 0, 1, 3]))):  # the same weight twice
        rows[draw(st.integers(0, units - 1))][draw(st.integers(0, inputs - 1))] = draw(st.sampled_from(weights))
    made = max(made, max(weights) + 1)
    orders = st.sampled_from([range(inputs), range(inputs), range(inputs)[::-1]]) | st.permutations(range(inputs))
    heard = draw(orders)
    has_bias = draw(st.booleans())
    comes, association, activation = draw(st.tuples(st.sampled_from(["first", "last"]), ASSOCIATIONS, ACTIVATIONS))
    shared_bias = draw(st.sampled_from([False, False, False, True]))
    neurons = []
    for n, row in enumerate(rows):
        bias = None if not has_bias else made if shared_bias else made + n
        neurons.append(Neuron(tuple(row), tuple(heard), bias, comes, association, activation, True))
    made += has_bias * (1 if shared_bias else units)
    odd = (
        None
        if plain
        else draw(
            st.sampled_from([None, None, None, None, "activation", "association", "heard", "bias", "weight_first"])
        )
    )
    if odd and units > 1:
        n = draw(st.integers(0, units - 1))
        other = {
            "activation": draw(ACTIVATIONS),
            "association": draw(ASSOCIATIONS),
            "heard": draw(st.permutations(heard).map(tuple)),
            "bias": draw(st.sampled_from([None, 0])),
            "weight_first": False,
        }
        neurons[n] = neurons[n]._replace(**{odd: other[odd]})
    return neurons, made


PENALTIES = {
    "squares": lambda p: sum(v * v for v in p) * 1e-2,
    "powers": lambda p: sum(v**2 for v in p) * 1e-2,
    "neighbours": lambda p: sum((a * b for a, b in zip(p, p[1:])), p[0] * 0.5),
    "mirrored": lambda p: sum(a * b for a, b in zip(p, p[::-1])),
    "plain": sum,
    "bounded": lambda p: sum((v * 0.5).tanh() for v in p),
}
"""What is added to the loss for the parameters themselves: updates that read them."""


def squared(d):
    return d * d


LOSSES = {
    "squares": lambda outputs, targets: sum((o - t) ** 2 for o, t in zip(outputs, targets)),
    "products": lambda outputs, targets: sum(squared(o - t) for o, t in zip(outputs, targets)),
    "added": lambda outputs, targets: sum(o * t for o, t in zip(outputs, targets)),
    "largest": lambda outputs, targets: functools.reduce(
        lambda a, b: a.max(b), [o - t for o, t in zip(outputs, targets)]
    ),
    "shares": lambda outputs, targets: _shares([o.tanh().exp() for o in outputs], targets),
}


def _shares(exps, targets):
    total = sum(exps)
    return -sum(t * (e / total + 0.0001).log() for t, e in zip(targets, exps))


@st.composite
def networks(draw, plain=False):
    """Layers with weights in all orders, tied or not, over some samples in one graph."""
    inputs, samples = draw(st.integers(1, 5)), draw(st.sampled_from([1] if plain else [1, 1, 1, 2, 3]))
    network, made, width = [], 0, inputs
    for units in draw(st.lists(SIZES, min_size=1, max_size=3)):
        layer, made = draw(layers(width, units, made, plain))
        network.append(layer)
        width = units
    loss = draw(st.sampled_from(list(LOSSES)))
    penalties = () if plain else draw(st.sampled_from([(), (), *((kind,) for kind in PENALTIES)]))
    also = draw(st.sampled_from(["", "parameters", "hidden"]))
    inputs_too = draw(st.sampled_from(["", "", "shifted", "gated", "skip"]))
    features = samples * inputs
    columns = features + samples * width

    def build(Value, leaves):
        x, targets, p = leaves[:features], leaves[features:columns], leaves[columns:]
        # Values that are made first come from parameters alone: as lanes there are more of them than of any layer.
        seen = [v * 2.0 for v in p] if also == "parameters" else []
        total = Value(0.0)
        for sample in range(samples):
            state = row = x[sample * inputs : (sample + 1) * inputs]
            if inputs_too == "shifted":  # by parameters whose gradients are sums that they alone take
                state = [v + by for v, by in zip(state, p[made:])]
            for layer in network:
                state = [neuron(p, state) for neuron in layer]
                if also == "hidden":
                    seen += state
            if inputs_too == "gated":
                total = total + sum((v * by).tanh() for v, by in zip(row, p[made:]))
            if inputs_too == "skip":
                state = [v * row[0] for v in state]
            total = total + LOSSES[loss](state, targets[sample * width : (sample + 1) * width])
        for kind in penalties:
            total = total + PENALTIES[kind](p)
        return [*seen, *state, total]

    kinds = ("input",) * columns + ("parameter",) * (made + inputs * (inputs_too in ("shifted", "gated")))
    name = f"network({inputs=}, {samples=}, {network}, {loss=}, {penalties=}, {also=}, {inputs_too=})"
    outputs = st.lists(st.integers(0, 200), max_size=3).map(tuple)
    return draw(cases(name, kinds, build, outputs if not also else st.just(tuple(range(made)))))


# --- vectors -----------------------------------------------------------------------------------------------------

UNARY = {
    "relu": lambda a: a.relu(),
    "tanh": lambda a: a.tanh(),
    "half": lambda a: a * 0.5,
    "plus": lambda a: 1.5 + a,
    "minus": lambda a: -a,
    "square": lambda a: a**2,
}
BINARY = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": lambda a, b: a.max(b),
    "sub": lambda a, b: a - b,
}
MIXED = ("scan", "product scan", "spread", "outer", "sum")


class Step(NamedTuple):
    """One operation on whole registers: lane by lane, with the second operand's lanes moved."""

    op: str
    first: int
    others: tuple[int, ...]
    shift: int
    backwards: bool
    association: str

    def __call__(self, registers):
        a = registers[self.first % len(registers)]
        b = registers[self.others[0] % len(registers)]
        b = [b[(at + self.shift) % len(b)] for at in range(len(a))]
        b = b[::-1] if self.backwards else b
        if self.op in UNARY:
            return [UNARY[self.op](v) for v in a]
        if self.op in BINARY:
            return [BINARY[self.op](v, w) for v, w in zip(a, b)]
        if self.op == "scan":  # each lane needs the one before it
            return list(itertools.accumulate(a, lambda v, w: v + w))
        if self.op == "product scan":
            return list(itertools.accumulate(zip(a, b), lambda v, w: v * w[0] + w[1], initial=a[0]))[1:]
        if self.op == "spread":  # each lane needs all
            total = added(b, self.association)
            return [v * total for v in a]
        if self.op == "outer":
            return [added([v * w for w in b], self.association) for v in a]
        rows = [a, b, *(registers[other % len(registers)] for other in self.others[1:])]
        return [added(column, self.association) for column in zip(*rows)]


@st.composite
def vectors(draw):
    """Registers of some lanes each, worked on as wholes: chains that cross, and sums that feed sums."""
    lanes = draw(SIZES)
    leaves = draw(st.lists(st.sampled_from(["input", "parameter", "parameter", "constant"]), min_size=1, max_size=4))
    step = st.builds(
        Step,
        st.sampled_from([*UNARY, *BINARY, *BINARY, *MIXED]),
        st.integers(0, 12),
        st.lists(st.integers(0, 12), min_size=1, max_size=4).map(tuple),
        st.integers(0, 3),
        st.booleans(),
        ASSOCIATIONS,
    )
    steps = draw(st.lists(step, min_size=1, max_size=8))
    summed = draw(st.sets(st.integers(0, 12), max_size=3))
    association = draw(ASSOCIATIONS)

    def build(Value, given):
        registers = [list(given[at * lanes : (at + 1) * lanes]) for at in range(len(leaves))]
        for take in steps:
            registers.append(take(registers))
        totals = [added(registers[at % len(registers)], association) for at in sorted(summed)]
        values = [v for register in registers for v in register]
        return [*values, added([added(registers[-1], association), *totals], association)]

    kinds = tuple(kind for kind in leaves for _ in range(lanes))
    name = f"vectors({lanes} lanes, {leaves}, {steps}, {sorted(summed)}, {association!r})"
    return draw(cases(name, kinds, build, st.lists(st.integers(0, 200), max_size=3).map(tuple)))


# --- the numbers -------------------------------------------------------------------------------------------------


@st.composite
def cases(draw, name, kinds, build, outputs):
    """A graph with numbers for its leaves."""
    graph = Graph(name, tuple(draw(numbers(len(kinds)))), build)
    rows = draw(st.lists(numbers(kinds.count("input")), min_size=1, max_size=3))
    wild = draw(numbers(len(kinds), WILD))
    wild = [x if kind == "constant" else y for x, y, kind in zip(graph.numbers, wild, kinds)]
    return Case(graph, kinds, rows, [wild], draw(outputs))
