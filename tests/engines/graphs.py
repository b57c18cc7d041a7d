"""Graphs over leaves that a test supplies: those of `programs.py`, networks, and random ones; and how bits compare."""

from __future__ import annotations

import itertools
import math
import random
from array import array
from typing import Any, Callable, NamedTuple

from hypothesis import strategies as st

import engines
from engines.nn import cross_entropy
from tests.engines.programs import PROGRAMS

REFERENCE = "tuple"


def bits(values):
    """Doubles as bytes, with one NaN and one zero: what strictness leaves free."""
    return array("d", [math.nan if x != x else float(x) + 0.0 for x in values]).tobytes()


class Graph(NamedTuple):
    """A program whose leaves are given to it, so that it can be built over other numbers, or over the same Values."""

    name: str
    numbers: tuple[float, ...]
    """What its leaves hold to begin with."""
    build: Callable[..., Any]
    """Value class, leaves -> every Value that it made and names, its root last. May raise an ArithmeticError."""

    def __repr__(self) -> str:
        return f"{self.name} over {self.numbers}"


# --- the programs of `programs.py` -------------------------------------------------------------------------------


def of_program(program):
    """The program with its leaves taken from outside: its n-th call of `Value` gives the leaf that stood there."""
    made = []

    def note(number):
        made.append(engines.load(REFERENCE).Value(number))
        return made[-1]

    leaves, _ = program(note)
    places = [made.index(leaf) for leaf in leaves]

    def build(Value, leaves):
        given, calls = dict(zip(places, leaves)), itertools.count()

        def supply(number):
            place = next(calls)
            return given[place] if place in given else Value(number)

        return [program(supply)[1]]

    return Graph(program.__name__, tuple(leaf.data for leaf in leaves), build)


NAMED = tuple(map(of_program, PROGRAMS))


def classifier(inputs=3, hidden=4, classes=3):
    """A network under cross-entropy as a graph; its leaves are the features, the one-hot label, and the parameters."""
    rng = random.Random(1337)
    features = [rng.uniform(-1, 1) for _ in range(inputs)]
    weights = [rng.uniform(-1, 1) for _ in range((inputs + 1) * hidden + (hidden + 1) * classes)]
    label = [1.0] + [0.0] * (classes - 1)

    def build(Value, leaves):
        given = iter(leaves)
        x, expected = (list(itertools.islice(given, count)) for count in (inputs, classes))

        def layer(x, width, activate):
            sums = [sum((next(given) * xi for xi in x), next(given)) for _ in range(width)]
            return [s.relu() for s in sums] if activate else sums

        outputs = layer(layer(x, hidden, True), classes, False)
        return [*outputs, cross_entropy(outputs, expected)]

    graph = Graph("classifier", (*features, *label, *weights), build)
    return graph, ["input"] * (inputs + classes) + ["parameter"] * len(weights)


# --- random graphs -----------------------------------------------------------------------------------------------

UNARY = ("relu", "tanh", "exp", "log", "sigmoid", "neg")
BINARY = ("add", "sub", "mul", "div", "max")
EXPONENTS = (-2, -1, 0, 1, 2, 3, 0.5, -0.5, 2.0, 1.5)

leaf_values = st.one_of(
    st.floats(-4.0, 4.0), st.sampled_from([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-320, 1e300])
)
tame_values = st.one_of(st.floats(-2.0, 2.0), st.sampled_from([0.0, -0.0, 1.0, -1.0]))
instructions = st.lists(
    st.tuples(st.sampled_from(UNARY + BINARY + ("pow", "const")), st.integers(0, 999), st.integers(0, 999)),
    min_size=1,
    max_size=40,
)


def apply(op, a, b, number):
    if op == "const":
        return (a * 0.75, 0.75 * a, a + 1.5, 1.5 - a)[number % 4]
    if op == "pow":
        return a ** EXPONENTS[number % len(EXPONENTS)]
    if op == "neg":
        return -a
    if op in UNARY:
        return getattr(a, op)()
    return {"add": a.__add__, "sub": a.__sub__, "mul": a.__mul__, "div": a.__truediv__, "max": a.max}[op](b)


class Complex(ArithmeticError):
    """A negative number to a fractional power: no number of ours."""


def of_instructions(numbers, program):
    """The graph that those instructions build; their operands count from the newest Value, so that chains get deep."""

    def build(Value, leaves):
        values = list(leaves)
        for op, i, j in program:
            made = apply(op, values[-1 - i % len(values)], values[-1 - j % len(values)], j)
            if isinstance(made.data, complex):
                raise Complex
            values.append(made)
        return values

    return Graph(f"of_instructions(…, {program})", tuple(numbers), build)


def side_by_side(graphs):
    """Their sum as one graph, for compilers that are slow: a sum hands each root the gradient that it has alone."""

    def build(Value, leaves):
        given, values, roots = iter(leaves), [], []
        for graph in graphs:
            values += graph.build(Value, list(itertools.islice(given, len(graph.numbers))))
            roots.append(values[-1])
        return [*values, sum(roots[1:], roots[0])]

    return Graph("\n+ ".join(map(repr, graphs)), tuple(x for graph in graphs for x in graph.numbers), build)


def random_graphs(values=leaf_values):
    return st.builds(of_instructions, st.lists(values, min_size=1, max_size=6), instructions)
