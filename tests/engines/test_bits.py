"""Every engine compared with the reference: an engine may be faster than the interpreter, never different from it."""

import math
import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engines
from engines.interpreted.bare import Bare
from tests.engines.graphs import REFERENCE, apply, bits, instructions, leaf_values
from tests.engines.ladder import of_each_value
from tests.engines.programs import PROGRAMS

STRICT = [name for name in of_each_value() if engines.load(name).strict]
LOOSE = [name for name in of_each_value() if not engines.load(name).strict]


def run(engine, program):
    """Return the bits of the root's and leaves' data and gradients after backward."""
    leaves, root = program(engines.load(engine).Value)
    root.backward()
    return bits([v.data for v in [root, *leaves]]), bits([v.grad for v in [root, *leaves]])


@pytest.mark.parametrize("engine", STRICT)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_engine_computes_the_reference_bits(engine, program):
    """An engine may be faster than the interpreter, never different from it."""
    assert run(engine, program) == run(REFERENCE, program)


@pytest.mark.parametrize("engine", of_each_value())
def test_a_leaf_as_the_root(engine):
    """`backward` sets the gradient of the root to 1 and adds to no other, so a second call changes nothing."""
    leaf = engines.load(engine).Value(2.0)
    for _ in range(2):
        leaf.backward()
        assert leaf.grad == 1


@pytest.mark.parametrize("engine", LOOSE)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_loose_engine_stays_within_its_bound(engine, program):
    data, grads = run(engine, program)
    expected_data, expected_grads = run(REFERENCE, program)
    assert data == expected_data, "the data differ, but must not depend on the order of children"
    bound = engines.load(engine).error_bound
    for x, y in zip(array("d", grads), array("d", expected_grads)):
        assert x == y or (x != x and y != y) or abs(x - y) <= bound * max(1.0, abs(y))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_bare_numbers_compute_the_reference_data(program):
    """Profiles time `Bare` as every engine's forward pass, so it must do the same arithmetic."""
    assert bits([program(Bare)[1].data]) == bits([program(engines.load(REFERENCE).Value)[1].data])


# --- random graphs -----------------------------------------------------------------------------------------------


def outcome(engine, leaves, program):
    """Return the bits of every Value made, or the name of the exception that ended the program."""
    Value = engines.load(engine).Value
    values = [Value(x) for x in leaves]
    try:
        for op, i, j in program:
            made = apply(op, values[i % len(values)], values[j % len(values)], j)
            if isinstance(made.data, complex):
                return "complex"
            values.append(made)
        values[-1].backward()
    except (ArithmeticError, ValueError) as error:
        return type(error).__name__
    return bits([v.data for v in values]), bits([v.grad for v in values])


@pytest.mark.parametrize("engine", [name for name in STRICT if name != REFERENCE])
@settings(max_examples=150, deadline=None)
@given(leaves=st.lists(leaf_values, min_size=1, max_size=6), program=instructions)
def test_random_graphs_agree(engine, leaves, program):
    expected = outcome(REFERENCE, leaves, program)
    found = outcome(engine, leaves, program)
    if isinstance(expected, str):
        # Engines that store partials compute them in the forward pass, so 0.0 ** -1 may raise there. Either way, a
        # domain error ends the guarantee of equal bits.
        assert isinstance(found, str)
    elif isinstance(found, str):
        # `local-grads` computes all partials, so one that is never used may still raise.
        assert engine == "local-grads"
    else:
        assert found == expected


# --- powers ------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(base=st.floats(-1e3, 1e3), exponent=st.sampled_from([2, 2.0, 3, -1, 1]))
@pytest.mark.parametrize("engine", of_each_value())
def test_powers_are_libm_pow(engine, base, exponent):
    """PyPy's own x ** 2 is x * x, which differs in about one of 1,200 inputs."""
    if abs(base) < 1e-100 and exponent < 0:
        return  # Python raises, because the result overflows or divides by zero
    assert (engines.load(engine).Value(base) ** exponent).data == math.pow(base, exponent)


@pytest.mark.parametrize("engine", of_each_value())
def test_squares_are_libm_pow(engine):
    """The test takes enough squares that some differ from x * x, which PyPy would compute."""
    Value, rng = engines.load(engine).Value, random.Random(1337)
    bases = [rng.uniform(-1e3, 1e3) for _ in range(20_000)]
    assert any(math.pow(base, 2) != base * base for base in bases)
    assert all((Value(base) ** 2).data == math.pow(base, 2) for base in bases)


# --- finite differences ------------------------------------------------------------------------------------------

SMOOTH = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**3 + b**-1,
    "relu": lambda a, b: a.relu() + (-b).relu(),
    "tanh": lambda a, b: a.tanh() * b,
    "exp": lambda a, b: (a * b).exp(),
    "log": lambda a, b: a.log() * b,
    "sigmoid": lambda a, b: (a * b).sigmoid(),
    "max": lambda a, b: a.max(b) * b,
    "number": lambda a, b: 2.0 * a + (3.0 - b) + 1.0 / a,
}


def gradient_error(Value, function, at):
    """Largest relative difference between backward's gradients and central differences."""
    leaves = [Value(x) for x in at]
    function(*leaves).backward()
    worst = 0.0
    for i, leaf in enumerate(leaves):
        h = 1e-6
        up, down = ([x + (h if j == i else 0.0) * sign for j, x in enumerate(at)] for sign in (1, -1))
        numeric = (function(*map(Value, up)).data - function(*map(Value, down)).data) / (2 * h)
        worst = max(worst, abs(numeric - leaf.grad) / max(1.0, abs(numeric)))
    return worst


@pytest.mark.parametrize("engine", of_each_value())
@pytest.mark.parametrize("op", SMOOTH)
def test_gradients_by_finite_differences(engine, op):
    for at in ((1.3, 0.6), (0.4, 2.2), (2.5, -1.7)):
        assert gradient_error(engines.load(engine).Value, SMOOTH[op], at) < 1e-6


def test_the_suite_catches_swapped_partials():
    """Mutation: a `*` with swapped partials must not pass."""
    Right = engines.load(REFERENCE).Value

    class Wrong(Right):
        def __mul__(self, other):
            other = other if isinstance(other, Right) else Wrong(other)
            out = Wrong(self.data * other.data, (self, other), "*")

            def _backward():
                self.grad += self.data * out.grad
                other.grad += other.data * out.grad

            out._backward = _backward
            return out

    assert gradient_error(Wrong, SMOOTH["mul"], (1.3, 0.6)) > 0.1
    leaves, root = PROGRAMS[0](Wrong)
    root.backward()
    assert bits([v.grad for v in leaves]) != run(REFERENCE, PROGRAMS[0])[1]
