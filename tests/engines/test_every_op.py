"""Every op of the table on every Value class: the reference has the derivatives, and the others have its bits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engines
from engines.graph.expr import function
from engines.graph.ops import OPS
from engines.interpreted.bare import Bare
from harness import workloads
from tests.engines.graphs import REFERENCE, bits
from tests.engines.ladder import of_each_value, promised, runs_here
from tests.engines.of_table import EveryOp, apply, at_point, build, of_op, points, program, weight

ENGINES = of_each_value()


def outcome(engine, rows):
    """Return the data and the gradients of all rows."""
    values, total = build(engines.load(engine).Value, rows)
    total.backward()
    return [v.data for v in values], [v.grad for v in values]


def agrees(engine, rows):
    """Whether the engine computes what it promises: the reference's bits, or gradients within its bound."""
    (data, gradients), (right, derivatives) = outcome(engine, rows), outcome(REFERENCE, rows)
    if engines.load(engine).strict:
        return bits(data) == bits(right) and bits(gradients) == bits(derivatives)
    return bits(data) == bits(right) and gradients == promised(engine, derivatives)


def has_derivatives(name):
    """Whether the reference's gradients of an op are central differences of its forward expression at 50 digits."""
    mpmath = pytest.importorskip("mpmath")
    forward = function(OPS[name].forward, functions={**vars(mpmath), "pow": mpmath.power})
    step = mpmath.mpf("1e-15")
    for point, constant in points(name):
        leaves = [engines.load(REFERENCE).Value(x) for x in point]
        out = apply(name, leaves, constant) * weight(1)
        out.backward()
        with mpmath.workdps(50):
            at = [mpmath.mpf(x) for x in point]
            if abs(forward(*at, k=constant) * weight(1) - out.data) > 1e-12:
                return False
            for index, leaf in enumerate(leaves):
                up, down = ([x + sign * step * (i == index) for i, x in enumerate(at)] for sign in (1, -1))
                slope = (forward(*up, k=constant) - forward(*down, k=constant)) / (2 * step) * weight(1)
                if abs(slope - leaf.grad) > 1e-12 * (1 + abs(slope)):
                    return False
    return True


@pytest.mark.parametrize("op", OPS)
def test_the_reference_has_the_derivatives(op):
    assert has_derivatives(op)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != REFERENCE])
def test_an_op_keeps_the_reference_bits(engine, op):
    assert agrees(engine, of_op(op))


@pytest.mark.parametrize("op", OPS)
def test_bare_numbers_and_the_table_compute_the_reference_data(op):
    for point, constant in points(op):
        right = apply(op, [engines.load(REFERENCE).Value(x) for x in point], constant).data
        assert bits([apply(op, [Bare(x) for x in point], constant).data]) == bits([right])
        assert bits([at_point(OPS[op], point, constant)[0]]) == bits([right])


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != REFERENCE])
@settings(max_examples=50)
@given(
    numbers=st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=4),
    choices=st.lists(
        st.tuples(st.sampled_from(list(OPS)), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=12
    ),
)
def test_random_programs_keep_the_reference_bits(engine, numbers, choices):
    """They are safe by construction, unlike those of `test_bits`, so every op of every program is compared."""
    assert agrees(engine, program(numbers, choices))


WORKLOAD = replace(
    workloads.load("polynomial"), name="every-op", build=EveryOp, whole_set=False, rate=lambda update: 1e-6
)


@pytest.mark.parametrize("engine", [name for name in (*ENGINES, "bytecode", "tcc") if name != REFERENCE])
def test_training_with_every_op_keeps_the_reference_bits(engine):
    """`replay` has a second forward pass, and a compiled engine has its own of everything."""
    if not runs_here(engine):
        pytest.skip(f"{engine} can't run here")
    found, right = (engines.load(name).prepare(WORKLOAD) for name in (engine, REFERENCE))
    for trainer in (found, right):
        trainer.train(3)
    assert found.losses == promised(engine, right.losses)
    assert found.parameters() == promised(engine, right.parameters())
