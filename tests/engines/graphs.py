"""Graphs whose leaves the test supplies (programs, networks, random graphs), and `bits`."""

from __future__ import annotations

import functools
import itertools
import math
import random
from array import array
from typing import Any, Callable, NamedTuple

from hypothesis import strategies as st

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

    def of(self, Value: Any) -> tuple[list[Any], Any]:
        """New leaves, and the root over them."""
        leaves = [Value(x) for x in self.numbers]
        return leaves, self.build(Value, leaves)[-1]


# --- programs ----------------------------------------------------------------------------------------------------

MICROGRAD_README = """\
from micrograd.engine import Value

a = Value(-4.0)
b = Value(2.0)
c = a + b
d = a * b + b**3
c += c + 1
c += 1 + c + (-a)
d += d * 2 + (b + a).relu()
d += 3 * d + (b - a).relu()
e = c - d
f = e**2
g = f / 2.0
g += 10.0 / f
print(f'{g.data:.4f}') # prints 24.7041, the outcome of this forward pass
g.backward()
print(f'{a.grad:.4f}') # prints 138.8338, i.e. the numerical value of dg/da
print(f'{b.grad:.4f}') # prints 645.5773, i.e. the numerical value of dg/db
"""
"""The example from micrograd's README as a complete script, unchanged."""
NAMED = []
"""Programs on which all engines must agree."""


def program(*numbers):
    """Add a program to NAMED: a function of a Value class and of leaves with these numbers, which returns the root."""

    def add(function):
        NAMED.append(Graph(function.__name__, numbers, lambda Value, leaves: [function(Value, *leaves)]))
        return NAMED[-1]

    return add


@program(-4.0, 2.0)
def readme(Value, a, b):
    """The example from micrograd's README: g is 24.7041, and the gradients are 138.8338 and 645.5773."""
    names = {"a": a, "b": b}
    exec(MICROGRAD_README.partition("b = Value(2.0)\n")[2].partition("print")[0], names)
    return names["g"]


@program(3.25)
def shared_operand(Value, a):
    b = a * a
    return b * a + b * b


@program(0.7, -1.3)
def every_operator(Value, a, b):
    c = (a + b) * (a - b) / (b * b + 1.0) - 2.0 / (a + 3.0) + (-a) ** 3 + (a * a) ** 0.5 + (a + 5) ** -2
    return 1.5 + c.tanh() * a.exp() + (a + 2.0).log() * b.relu() + a.max(b) + b.max(0.25) + (3 - a) * 0.1


@program(0.7, -1.3)
def sigmoids(Value, a, b):
    return (a * b).sigmoid() * a + b.sigmoid() ** 2 + Value(0.0).sigmoid()


@program(2.0, 2.0, 0.0)
def ties(Value, a, b, zero):
    """At a tie, `max` gives its gradient to the right operand; ReLU at zero gives nothing."""
    return a.max(b) * 3.0 + zero.relu() + zero


@program(0.0, -0.0)
def signed_zeros(Value, a, b):
    return (a * b + b).max(a * -1.0) + b.relu() * 2.0 + a.tanh()


@program(math.nan, 1.5)
def not_a_number(Value, a, b):
    return a.relu() * b + b.max(a) + a.max(b) + a * a


@program(-1.0, math.inf, 2.0)
def infinities(Value, a, b, c):
    """ReLU's gradient is a multiplication, so 0 * inf gives NaN. `max` adds nothing to its other operand."""
    return a.relu() * b + c.max(a) * b + b.max(c)


@program(2.0, 0.5, math.inf)
def infinite_gradient(Value, left, right, b):
    """`max` adds nothing to its other operand, which is used nowhere else. Adding 0 * inf would make it NaN."""
    return left.max(right) * b + right.max(left) * b


@program(1.1)
def diamond(Value, a):
    return functools.reduce(lambda x, _: x * 0.5 + x * a, range(20), a)


@program(1.0, 2.0)
def dead_branch(Value, a, b):
    """Values that the root does not use get no gradient."""
    _ = a * b * 100.0
    return a + 1.0


@program(1.0)
def chain(Value, a):
    return functools.reduce(lambda x, i: x * 1.0001 if i % 2 else x + a, range(2000), a)


@program(*map(random.Random(1).uniform, [-1.0] * 56, [1.0] * 56))
def dense_layer(Value, *leaves):
    rows, x = [leaves[at : at + 8] for at in range(0, 48, 8)], leaves[48:]
    out = [sum((wi * xi for wi, xi in zip(row, x)), Value(0.0)).relu() for row in rows]
    return sum(o * o for o in out)


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
