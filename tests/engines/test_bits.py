"""Every engine compared with the reference: an engine may be faster than the interpreter, never different from it."""

import math
import random

import pytest
from hypothesis import given, settings

from tests.engines.compiled.compiling import reference
from tests.engines.graphs import NAMED, REFERENCE, bits, random_graphs
from tests.engines.ladder import of_each_value
from zoomgrad import engines

STRICT = [name for name in of_each_value() if engines.load(name).strict]


def results(engine, graph):
    """Return the bits of all data and of the leaves' gradients after backward; None if the engine raises."""
    found = reference(graph, graph.numbers, engine)
    return found and (bits(found.data), bits(found.gradients))


@pytest.mark.parametrize("engine", STRICT)
@pytest.mark.parametrize("graph", NAMED, ids=lambda graph: graph.name)
def test_engine_computes_the_reference_bits(engine, graph):
    """An engine may be faster than the interpreter, never different from it."""
    assert results(engine, graph) == results(REFERENCE, graph)


@pytest.mark.parametrize("engine", [name for name in STRICT if name != REFERENCE])
@settings(max_examples=60, deadline=None)
@given(random_graphs())
def test_random_graphs_agree(engine, graph):
    """Engines that store partials compute them in the forward pass, so 0.0 ** -1 may raise there.

    Either way, a domain error ends the guarantee of equal bits. `local-grads` computes all partials, so one that is
    never used may still raise.
    """
    expected, found = results(REFERENCE, graph), results(engine, graph)
    assert found == expected or (found is None and engine == "local-grads")


@pytest.mark.parametrize("engine", of_each_value())
def test_a_leaf_as_the_root(engine):
    """`backward` sets the gradient of the root to 1 and adds to no other, so a second call changes nothing."""
    leaf = engines.load(engine).Value(2.0)
    for _ in range(2):
        leaf.backward()
        assert leaf.grad == 1


# --- powers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", of_each_value())
def test_squares_are_libm_pow(engine):
    """The test takes enough squares that some differ from x * x, which PyPy would compute."""
    Value, rng = engines.load(engine).Value, random.Random(1337)
    bases = [rng.uniform(-1e3, 1e3) for _ in range(20_000)]
    assert any(math.pow(base, 2) != base * base for base in bases)
    assert all((Value(base) ** 2).data == math.pow(base, 2) for base in bases)
