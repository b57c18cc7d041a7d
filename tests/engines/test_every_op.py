"""Every op of the table on every Value class: the reference has the derivatives, and the others have its bits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.compiled.compiling import ONE_OF_EACH_KIND
from tests.engines.graphs import REFERENCE, bits
from tests.engines.ladder import of_each_value, promised, runs_here
from tests.engines.of_table import EveryOp, apply, at_point, build, of_op, points, program, weight
from zoomgrad import engines
from zoomgrad.engines.graph.expr import function
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.harness import workloads

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


def check_derivatives(rows):
    """Compare the reference's gradients of a program with central differences of its loss at 50 digits.

    In doubles such a difference would be right to 10 digits. With steps of 1e-15 at 50 digits, it is right to 30, and
    shares no chain rule, no table of derivatives and no rounding with the reference.
    """
    mpmath = pytest.importorskip("mpmath")
    functions = {**vars(mpmath), "pow": mpmath.power}
    forward = {name: function(op.forward, functions=functions) for name, op in OPS.items()}

    def loss(step, moved):
        numbers = []
        for at, row in enumerate(rows):
            if row.op is None:
                numbers.append(mpmath.mpf(row.number) + step * (at == moved))
            else:
                numbers.append(forward[row.op](*(numbers[i] for i in row.operands), k=row.number))
        return mpmath.fsum(number * weight(at) for at, number in enumerate(numbers))

    values, total = build(engines.load(REFERENCE).Value, rows)
    total.backward()
    with mpmath.workdps(50):
        step = mpmath.mpf("1e-15")
        assert abs(loss(0, None) - total.data) < 1e-11 * (1 + abs(total.data))
        for at in (at for at, row in enumerate(rows) if row.op is None):
            slope = (loss(step, at) - loss(-step, at)) / (2 * step)
            assert abs(slope - values[at].grad) < 1e-11 * (1 + abs(slope)), f"row {at} of {rows}"


@pytest.mark.parametrize("op", OPS)
def test_the_reference_has_the_derivatives(op):
    check_derivatives(of_op(op))


NUMBERS = st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=4)
CHOICES = st.lists(
    st.tuples(st.sampled_from(list(OPS)), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=12
)


@settings(deadline=None)
@given(NUMBERS, CHOICES)
def test_the_reference_has_the_derivatives_of_programs(numbers, choices):
    check_derivatives(program(numbers, choices))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != REFERENCE])
def test_an_op_keeps_the_reference_bits(engine, op):
    assert agrees(engine, of_op(op))


@pytest.mark.parametrize("op", OPS)
def test_the_table_computes_the_reference_data(op):
    for point, constant in points(op):
        right = apply(op, [engines.load(REFERENCE).Value(x) for x in point], constant).data
        assert bits([at_point(OPS[op], point, constant)[0]]) == bits([right])


WORKLOAD = replace(
    workloads.load("polynomial"), name="every-op", build=EveryOp, whole_set=False, rate=lambda update: 1e-6
)


@pytest.mark.parametrize("engine", [name for name in (*ENGINES, *ONE_OF_EACH_KIND) if name != REFERENCE])
def test_training_with_every_op_keeps_the_reference_bits(engine):
    """`replay` has a second forward pass, and a compiled engine has its own of everything."""
    if not runs_here(engine):
        pytest.skip(f"{engine} can't run here")
    found, right = (engines.load(name).prepare(WORKLOAD) for name in (engine, REFERENCE))
    for trainer in (found, right):
        trainer.train(3)
    assert found.losses == promised(engine, right.losses)
    assert found.parameters() == promised(engine, right.parameters())
