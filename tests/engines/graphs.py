"""Graphs whose leaves the test supplies (the programs of `programs.py`, networks, random graphs), and `bits`."""

from __future__ import annotations

import itertools
import math
import random
from array import array
from typing import Any, Callable, NamedTuple

from hypothesis import strategies as st

from tests.engines.programs import PROGRAMS
from zoomgrad import engines
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.nn import cross_entropy

REFERENCE = "tuple"


def bits(values):
    """Return doubles as bytes, with one NaN and one zero: strictness ignores NaN payloads and the sign of zero."""
    return array("d", [math.nan if x != x else float(x) + 0.0 for x in values]).tobytes()


class Graph(NamedTuple):
    """A program that takes its leaves as an argument, so it can be built over other numbers or over the same Values."""

    name: str
    numbers: tuple[float, ...]
    """Initial data of the leaves."""
    build: Callable[..., Any]
    """(Value class, leaves) -> the Values to compare, root last. May raise an ArithmeticError."""

    def __repr__(self) -> str:
        return f"{self.name} over {self.numbers}"


# --- the programs of `programs.py` -------------------------------------------------------------------------------


def of_program(program):
    """Return the program as a Graph. Calls of `Value` that made its leaves now return the supplied leaves."""
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
    """Return a network under cross-entropy, and the kind of each leaf: features, one-hot label, then parameters."""
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

METHODS = {name.lower(): op.arity for name, op in OPS.items() if name.isidentifier()}
UNARY = (*(name for name, arity in METHODS.items() if arity == 1), "neg")
BINARY = ("add", "sub", "mul", "div", *(name for name, arity in METHODS.items() if arity == 2))
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
    return call(op, a, b)


def call(op, a, b):
    """Apply one of UNARY or BINARY."""
    if op == "neg":
        return -a
    if op in UNARY:
        return getattr(a, op)()
    if op in METHODS:
        return getattr(a, op)(b)
    return {"add": a.__add__, "sub": a.__sub__, "mul": a.__mul__, "div": a.__truediv__}[op](b)


class Complex(ArithmeticError):
    """A negative number to a fractional power gave a complex number, which no engine supports."""


def of_instructions(numbers, program):
    """Return the graph that the instructions build. Operands count back from the newest Value, so chains get deep."""

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
    """Return the sum of the graphs as one graph, for slow compilers. Each root keeps the gradient it has alone."""

    def build(Value, leaves):
        given, values, roots = iter(leaves), [], []
        for graph in graphs:
            values += graph.build(Value, list(itertools.islice(given, len(graph.numbers))))
            roots.append(values[-1])
        return [*values, sum(roots[1:], roots[0])]

    return Graph("\n+ ".join(map(repr, graphs)), tuple(x for graph in graphs for x in graph.numbers), build)


def random_graphs(values=leaf_values):
    return st.builds(of_instructions, st.lists(values, min_size=1, max_size=6), instructions)
