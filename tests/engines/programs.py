"""Test programs over the Value API on which all engines must agree: functions from a Value class to (leaves, root)."""

import random

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


def readme(Value):
    """The example from micrograd's README: g is 24.7041, and the gradients are 138.8338 and 645.5773."""
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
    return [a, b], g


def shared_operand(Value):
    a = Value(3.25)
    b = a * a
    return [a], b * a + b * b


def every_operator(Value):
    a, b = Value(0.7), Value(-1.3)
    c = (a + b) * (a - b) / (b * b + 1.0) - 2.0 / (a + 3.0) + (-a) ** 3 + (a * a) ** 0.5 + (a + 5) ** -2
    return [a, b], 1.5 + c.tanh() * a.exp() + (a + 2.0).log() * b.relu() + a.max(b) + b.max(0.25) + (3 - a) * 0.1


def sigmoids(Value):
    a, b = Value(0.7), Value(-1.3)
    return [a, b], (a * b).sigmoid() * a + b.sigmoid() ** 2 + Value(0.0).sigmoid()


def ties(Value):
    """At a tie, `max` gives its gradient to the right operand; ReLU at zero gives nothing."""
    a, b, zero = Value(2.0), Value(2.0), Value(0.0)
    return [a, b, zero], a.max(b) * 3.0 + zero.relu() + zero


def signed_zeros(Value):
    a, b = Value(0.0), Value(-0.0)
    return [a, b], (a * b + b).max(a * -1.0) + b.relu() * 2.0 + a.tanh()


def not_a_number(Value):
    a, b = Value(float("nan")), Value(1.5)
    return [a, b], a.relu() * b + b.max(a) + a.max(b) + a * a


def infinities(Value):
    """ReLU's gradient is a multiplication, so 0 * inf gives NaN. `max` adds nothing to its other operand."""
    a, b, c = Value(-1.0), Value(float("inf")), Value(2.0)
    return [a, b, c], a.relu() * b + c.max(a) * b + b.max(c)


def infinite_gradient(Value):
    """`max` adds nothing to its other operand, which is used nowhere else. Adding 0 * inf would make it NaN."""
    left, right, b = Value(2.0), Value(0.5), Value(float("inf"))
    return [left, right, b], left.max(right) * b + right.max(left) * b


def diamond(Value):
    a = Value(1.1)
    x = a
    for _ in range(20):
        x = x * 0.5 + x * a
    return [a], x


def dead_branch(Value):
    """Values that the root does not use get no gradient."""
    a, b = Value(1.0), Value(2.0)
    _ = a * b * 100.0
    return [a, b], a + 1.0


def chain(Value):
    a = Value(1.0)
    x = a
    for i in range(2000):
        x = x * 1.0001 if i % 2 else x + a
    return [a], x


def dense_layer(Value):
    rng = random.Random(1)
    w = [[Value(rng.uniform(-1, 1)) for _ in range(8)] for _ in range(6)]
    x = [Value(rng.uniform(-1, 1)) for _ in range(8)]
    out = [sum((wi * xi for wi, xi in zip(row, x)), Value(0.0)).relu() for row in w]
    return [v for row in w for v in row] + x, sum(o * o for o in out)


PROGRAMS = (
    readme,
    shared_operand,
    every_operator,
    sigmoids,
    ties,
    signed_zeros,
    not_a_number,
    infinities,
    infinite_gradient,
    diamond,
    dead_branch,
    chain,
    dense_layer,
)
