"""Programs over every op of the table. An added op is in them without another line here.

Operands are points where an op and its derivatives are moderate and smooth, found from its row alone. So no engine
raises, and each gradient is a derivative.
"""

from __future__ import annotations

import random
from typing import NamedTuple, Optional

from zoomgrad.engines.graph.ops import OPS

OPERATORS = {"+": "__add__", "*": "__mul__", "**": "__pow__"}
"""Op -> its method, where that is not the op's own name."""
EXPONENTS = (2, 3, -1, 0.5, 1.5)
POINTS = 4
"""Points at which each op is tested."""
NEAR, JUMP, LARGEST = 0.01, 0.25, 10.0
"""A derivative that changes by JUMP, relative to 1 plus its size, within NEAR is close to a kink or a pole."""


class Row(NamedTuple):
    """A row of a program: a leaf, or an op over earlier rows."""

    op: Optional[str]
    operands: tuple[int, ...]
    number: Optional[float]
    """The data of a leaf, or the constant of an op that takes one."""


def method(op):
    """Return the name of the Value's method for an op of the table."""
    return OPERATORS.get(op, op.lower())


def apply(op, operands, constant):
    """Apply an op of the table through the Value's method."""
    first, *others = operands
    return getattr(first, method(op))(*others, *([constant] if OPS[op].takes_constant else []))


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
    op, rng, found = OPS[name], random.Random(name), []
    for trial in range(10_000):
        point = [rng.uniform(-3.0, 3.0) for _ in range(op.arity)]
        constant = EXPONENTS[trial % len(EXPONENTS)] if op.takes_constant else None
        if is_smooth(op, point, constant):
            found.append((point, constant))
            if len(found) == POINTS:
                return found
    raise AssertionError(f"{name} has no smooth points between -3 and 3")


def program(numbers, choices):
    """Return the rows of a program. choices: (op, i, j), where i and j choose the first operands to try.

    If no operands are smooth, the op gets new leaves.
    """
    rows = [Row(None, (), x) for x in numbers]
    data = list(numbers)
    for name, i, j in choices:
        op = OPS[name]
        constant = EXPONENTS[j % len(EXPONENTS)] if op.takes_constant else None
        for shift in range(len(rows)):
            operands = tuple((place + shift) % len(rows) for place in (i, 2 * j)[: op.arity])
            if is_smooth(op, [data[place] for place in operands], constant):
                break
        else:
            point, constant = points(name)[j % POINTS]
            operands = tuple(range(len(rows), len(rows) + op.arity))
            rows += [Row(None, (), x) for x in point]
            data += point
        rows.append(Row(name, operands, constant))
        data.append(at_point(op, [data[place] for place in operands], constant)[0])
    return rows


def build(Value, rows):
    """Return the program's Values, and the sum of all of them with weights, so that every row gets a gradient."""
    values = []
    for row in rows:
        made = Value(row.number) if row.op is None else apply(row.op, [values[i] for i in row.operands], row.number)
        values.append(made)
    return values, sum((value * weight(i) for i, value in enumerate(values)), Value(0.0))


def weight(index):
    """Return the weight of a row in the sum."""
    return 0.5 + 0.25 * (index % 5)


def of_op(name):
    """Return a program that applies one op at each of its points, over leaves used once, then over one leaf only."""
    rows = []
    for point, constant in points(name):
        first = len(rows)
        rows += [Row(None, (), x) for x in point]
        rows.append(Row(name, tuple(range(first, len(rows))), constant))
    shared = Row(name, (first,) * OPS[name].arity, constant)  # a + a, or max at a tie
    return [*rows, shared]


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
