"""Golden text of each stage for small graphs, and of the loops for networks with layers."""

from __future__ import annotations

import doctest
import random
from dataclasses import astuple, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numpy")

import numpy as np

from engines.rerolled import recover
from engines.rerolled.engine import reroll
from engines.rerolled.recover import chains, gradients, groups, layout, nest
from engines.rerolled.recover import fuse as fuse_module
from engines.rerolled.recover.chains import chain
from engines.rerolled.recover.fuse import fuse
from engines.rerolled.recover.gradients import pull
from engines.rerolled.recover.groups import group
from engines.rerolled.recover.layout import lay_out
from engines.rerolled.recover.loops import Table
from harness import workloads
from tests.engines.graphs import Graph, of_program
from tests.engines.programs import readme
from tests.engines.rerolled.rolling import tape_of, tape_of_workload, text
from tests.engines.rerolled.tempting import GRAPHS

# --- graphs ------------------------------------------------------------------------------------------------------


def numbers(count):
    rng = random.Random(1337)
    return tuple(rng.gauss(0.0, 0.5) for _ in range(count))


def recurrent(inputs=2, units=4, steps=3):
    """Return the graph of an Elman network over a few steps, with the sum of its last state as loss."""
    weights = units * (inputs + units + 1)

    def build(Value, leaves):
        x, p = leaves[: inputs * steps], leaves[inputs * steps :]
        rows = [p[at : at + inputs + units + 1] for at in range(0, weights, inputs + units + 1)]
        state = [Value(0.0)] * units
        for step in range(steps):
            seen = [*x[step * inputs : (step + 1) * inputs], *state]
            state = [sum((w * s for w, s in zip(row, seen)), row[-1]).tanh() for row in rows]
        return [*state, sum(state)]

    return Graph("recurrent", numbers(inputs * steps + weights), build), inputs * steps


def convolution(length=10, filters=3, width=4):
    """Return the graph of filters that slide over a signal, with the sum of their ReLUs as loss."""

    def build(Value, leaves):
        x, p = leaves[:length], leaves[length:]
        rows = [p[at : at + width + 1] for at in range(0, len(p), width + 1)]
        seen = [
            sum((w * s for w, s in zip(row[:-1], x[place:])), row[-1]).relu()
            for place in range(length - width + 1)
            for row in rows
        ]
        return [*seen, sum(seen)]

    return Graph("convolution", numbers(length + filters * (width + 1)), build), length


def built(made):
    graph, inputs = made
    return tape_of(graph, ["input"] * inputs + ["parameter"] * (len(graph.numbers) - inputs))


TAPES = {
    "readme": lambda: tape_of(of_program(readme), ["input", "parameter"]),
    "mlp-2x2x1": lambda: tape_of_workload(workloads.load("mlp-2x2x1")),
    "xor": lambda: tape_of_workload(workloads.load("xor")),
    "mlp-8x6x4": lambda: tape_of_workload(workloads.load("mlp-8x6x4")),
    "digits": lambda: tape_of_workload(workloads.load("digits")),
    "recurrent": lambda: built(recurrent()),
    "convolution": lambda: built(convolution()),
}
SMALL = ("readme", "mlp-2x2x1", "xor")

# --- golden text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_sums(golden, name):
    pulled = pull(TAPES[name]())
    chained = chain(pulled)
    stages = {"pulled": pulled, "chained": chained, "fused": fuse(chained)}
    golden(
        f"rerolled-{name}-sums.txt", "\n".join(f"{stage}:\n{text(found.lines())}" for stage, found in stages.items())
    )


@pytest.mark.parametrize("name", TAPES)
def test_loops(golden, name):
    golden(f"rerolled-{name}-loops.txt", text(reroll(TAPES[name]()).lines()))


@pytest.mark.parametrize("name", ["recurrent", "convolution", "digits"])
def test_recovering_twice_gives_the_same_loops(name):
    """The loops must not depend on an address or on a hash that changes between runs."""
    first, second = (text(reroll(TAPES[name]()).lines()) for _ in range(2))
    assert first == second


# --- the examples in docstrings ------------------------------------------------------------------------------------

STAGES = [recover, gradients, chains, fuse_module, groups, nest, layout]


def two_units():
    """Return the graph of the package's docstring."""

    def build(Value, leaves):
        x, p = leaves[:2], leaves[2:]
        return [(p[0] + p[1] * x[0] + p[2] * x[1]).relu() * (p[3] + p[4] * x[0] + p[5] * x[1]).relu()]

    return Graph("two units", numbers(8), build), 2


@pytest.mark.parametrize("module", STAGES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_docstring_examples_are_correct(module):
    names = {
        "tape": built(two_units()),
        "show": lambda stage: print(*stage.lines(), sep="\n"),
        "np": np,
        **{stage.__name__: stage for stage in (pull, chain, fuse, group, lay_out)},
    }
    result = doctest.testmod(module, extraglobs=names)
    assert result.attempted
    assert not result.failed


# --- a hash that collides ----------------------------------------------------------------------------------------

COLLIDING = {
    "all": lambda key: key * np.uint64(0),
    "by halves": lambda key: key >> np.uint64(7) & np.uint64(1),
}


def plain(loops):
    """Return everything in the loops as text. `Loops.lines` leaves out the places in tables, and padding."""

    def plain_segment(segment):
        operands = [o.places.tolist() if isinstance(o, Table) else o for o in segment.operands]
        return segment._replace(operands=operands)

    whole = [(*astuple(replace(loop, segments=())), *map(plain_segment, loop.segments)) for loop in loops.loops]
    return repr([whole, *(getattr(loops, name) for name in ("areas", "numbers", "copies", "loss", "outputs"))])


def with_hash(monkeypatch, hash_, tape):
    """Return the loops as text, recovered with another hash."""
    with monkeypatch.context() as patch:
        patch.setattr(groups, "mix", hash_)
        return plain(reroll(tape))


@pytest.mark.parametrize("which", COLLIDING)
@pytest.mark.parametrize("name", [*TAPES, "moons", "attention", "random-dag", "mlp-784x50x10"])
def test_a_colliding_hash_changes_no_loop(monkeypatch, name, which):
    tape = TAPES[name]() if name in TAPES else tape_of_workload(workloads.load(name))
    assert with_hash(monkeypatch, COLLIDING[which], tape) == plain(reroll(tape))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_shapes_are_compared_whole(data):
    """Two sums may differ in a single number, such as the number of terms or the last slot of the last term."""
    few = st.integers(0, 1)
    sums = st.tuples(few, st.lists(st.tuples(few, few, few, few), min_size=1, max_size=2))
    drawn = data.draw(st.lists(sums, min_size=1, max_size=6))
    other = [data.draw(st.integers(0, at)) for at in range(len(drawn))]
    terms = np.array([term for _, terms in drawn for term in terms], np.int32)
    counts = np.array([len(terms) for _, terms in drawn])
    mirrored = np.array([mirrored for mirrored, _ in drawn])
    shapes = groups._Shapes(counts, mirrored, np.cumsum(counts) - counts, terms.view(np.uint64))
    assert shapes.are_equal() == all(shape == drawn[0] for shape in drawn)
    assert shapes.differ(np.array(other)).tolist() == [drawn[a] != drawn[b] for a, b in enumerate(other)]
    assert [drawn[at] for at in np.unique(shapes.numbers(), return_index=True)[1]] == [
        shape for at, shape in enumerate(drawn) if shape not in drawn[:at]
    ]


@pytest.mark.host
@pytest.mark.parametrize("graphs", GRAPHS)
def test_a_colliding_hash_changes_no_loop_of_tempting_graphs(graphs):
    @settings(max_examples=30, deadline=None)
    @given(GRAPHS[graphs])
    def agrees(case):
        tape = tape_of(case.graph, case.kinds, case.outputs)
        with pytest.MonkeyPatch.context() as patch:
            for hash_ in COLLIDING.values():
                assert with_hash(patch, hash_, tape) == plain(reroll(tape))

    agrees()
