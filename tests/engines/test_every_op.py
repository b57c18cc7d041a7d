"""Every op of the table: the reference has the derivatives, and training with all ops keeps its bits on every engine.

An added op is tested without another line here. Operands are points where an op and its derivatives are moderate and
smooth, found from its row alone. So no engine raises, and each gradient is a derivative.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import ONE_OF_EACH_KIND, usable
from tests.engines.graphs import REFERENCE, bits
from tests.engines.ladder import of_each_value, promised
from zoomgrad import engines
from zoomgrad.engines.graph.expr import function
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.harness import workloads

OPERATORS = {"+": "__add__", "*": "__mul__", "**": "__pow__"}
"""Op -> its method, where that is not the op's own name."""
EXPONENTS = (2, 3, -1, 0.5, 1.5)
POINTS = 4
"""Points at which each op is tested."""
NEAR, JUMP, LARGEST = 0.01, 0.25, 10.0
"""A derivative that changes by JUMP, relative to 1 plus its size, within NEAR is close to a kink or a pole."""


def apply(op, operands, constant):
    """Apply an op of the table through the Value's method."""
    first, *others = operands
    return getattr(first, OPERATORS.get(op, op.lower()))(*others, *([constant] if OPS[op].takes_constant else []))


def at_point(op, point, constant):
    """Return an op's value and its contributions for a gradient of 1, from the table. point: one number per operand."""
    a, b = (*point, None)[:2]
    out = op.compute(a, b, constant)
    contributions = op.contribute(a, b, constant, out, 1.0)
    return (out, *(contributions if op.arity > 1 else (contributions,)))


def is_smooth(op, point, constant):
    """Whether the op is defined around the point, and its derivatives neither large nor quickly changing."""
    try:
        here = at_point(op, point, constant)
        for index in range(op.arity):
            for step in (-NEAR, NEAR):
                there = at_point(op, [x + step * (i == index) for i, x in enumerate(point)], constant)
                if not all(abs(x - y) <= JUMP * (1 + abs(x)) for x, y in zip(here, there)):
                    return False
    except (ArithmeticError, ValueError):
        return False
    return all(abs(x) <= LARGEST for x in here)


def points(name):
    """Return POINTS smooth points of an op, each with its constant, always the same ones."""
    op, rng, smooth = OPS[name], random.Random(name), []
    for trial in range(10_000):
        point = [rng.uniform(-3.0, 3.0) for _ in range(op.arity)]
        constant = EXPONENTS[trial % len(EXPONENTS)] if op.takes_constant else None
        if is_smooth(op, point, constant):
            smooth.append((point, constant))
            if len(smooth) == POINTS:
                return smooth
    raise AssertionError(f"{name} has no smooth points between -3 and 3")


@pytest.mark.parametrize("name", OPS)
def test_the_reference_has_the_derivatives(name):
    """Compare gradients with central differences at 50 digits, also where one leaf is every operand.

    In doubles such a difference would be right to 10 digits. With steps of 1e-15 at 50 digits, it is right to 30, and
    shares no chain rule, no table of derivatives and no rounding with the reference.
    """
    mpmath = pytest.importorskip("mpmath")
    Value, op = engines.load(REFERENCE).Value, OPS[name]
    forward = function(op.forward, functions={**vars(mpmath), "pow": mpmath.power})
    cases = [(point, range(op.arity), constant) for point, constant in points(name)]
    cases.append((cases[0][0][:1], [0] * op.arity, cases[0][2]))  # a + a, or max at a tie
    for point, places, constant in cases:
        leaves = [Value(x) for x in point]
        out = apply(name, [leaves[place] for place in places], constant)
        (out * 0.75).backward()
        with mpmath.workdps(50):
            step = mpmath.mpf("1e-15")

            def moved(by, at, point=point, places=places, constant=constant):
                numbers = [mpmath.mpf(x) + by * (index == at) for index, x in enumerate(point)]
                return forward(*(numbers[place] for place in places), k=constant)

            assert abs(moved(0, 0) - out.data) < 1e-11 * (1 + abs(out.data))
            for at, leaf in enumerate(leaves):
                slope = 0.75 * (moved(step, at) - moved(-step, at)) / (2 * step)
                assert abs(slope - leaf.grad) < 1e-11 * (1 + abs(slope)), (point, places)


@pytest.mark.parametrize("op", OPS)
def test_the_table_computes_the_reference_data(op):
    for point, constant in points(op):
        right = apply(op, [engines.load(REFERENCE).Value(x) for x in point], constant).data
        assert bits([at_point(OPS[op], point, constant)[0]]) == bits([right])


class EveryOp:
    """A model that applies every op at its points, moved a little by the features, so that training stays smooth."""

    def __init__(self, nn, rng):
        Value = nn.Neuron.Value
        self.calls = [(name, [Value(x) for x in point], constant) for name in OPS for point, constant in points(name)]

    def __call__(self, features):
        shift = features[0] * (NEAR / 10)
        return sum((apply(name, [p + shift for p in leaves], constant) for name, leaves, constant in self.calls), shift)

    def parameters(self):
        return [p for _, leaves, _ in self.calls for p in leaves]


WORKLOAD = replace(
    workloads.load("polynomial"), name="every-op", build=EveryOp, whole_set=False, rate=lambda update: 1e-6
)


@pytest.mark.parametrize("engine", [name for name in (*of_each_value(), *ONE_OF_EACH_KIND) if name != REFERENCE])
def test_training_with_every_op_keeps_the_reference_bits(engine):
    """`replay` has a second forward pass, and a compiled engine has its own of everything."""
    trainer, right = (usable(name).prepare(WORKLOAD) for name in (engine, REFERENCE))
    for each in (trainer, right):
        each.train(3)
    assert trainer.losses == promised(engine, right.losses)
    assert trainer.parameters() == promised(engine, right.parameters())


# micrograd's conventions where mathematics leaves the gradient open, as literal numbers of the reference.
INF, NAN = math.inf, math.nan
CASES = {
    "relu": (lambda a: a.relu(), [((0.0,), 0.0, (0.0,)), ((5e-324,), 5e-324, (1.0,)), ((NAN,), NAN, (0.0,))]),
    "relu's gradient is a multiplication": (lambda a: a.relu() * INF, [((-1.0,), NAN, (NAN,))]),
    "max": (lambda a, b: a.max(b), [((2.0, 1.0), 2.0, (1.0, 0.0)), ((1.0, 2.0), 2.0, (0.0, 1.0))]),
    "a tie of max goes right": (lambda a, b: a.max(b), [((2.0, 2.0), 2.0, (0.0, 1.0))]),
    "max of NaN": (lambda a, b: a.max(b), [((NAN, 1.0), 1.0, (0.0, 1.0)), ((1.0, NAN), NAN, (0.0, 1.0))]),
    "max gives the other operand nothing": (lambda a, b: a.max(b) * INF, [((2.0, 1.0), INF, (INF, 0.0))]),
    "both operands": (lambda a: a * a, [((3.0,), 9.0, (6.0,))]),
    "both operands of max": (lambda a: a.max(a), [((3.0,), 3.0, (1.0,))]),
}


@pytest.mark.parametrize("engine", ["baseline", "tuple"])
@pytest.mark.parametrize("name", CASES)
def test_a_convention(name, engine):
    function, cases = CASES[name]
    for numbers, data, gradients in cases:
        leaves = [engines.load(engine).Value(x) for x in numbers]
        out = function(*leaves)
        out.backward()
        assert bits([out.data, *(v.grad for v in leaves)]) == bits([data, *gradients])
