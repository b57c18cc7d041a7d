"""The text of each stage for small graphs, and of the loops for what a reader would draw as layers."""

from __future__ import annotations

import random

import pytest

from engines.rerolled.engine import reroll
from engines.rerolled.recover.chains import chain
from engines.rerolled.recover.fuse import fuse
from engines.rerolled.recover.gradients import pull
from harness import workloads
from tests.engines.graphs import Graph, of_program
from tests.engines.programs import readme
from tests.engines.rerolled.rolling import tape_of, tape_of_workload, text

# --- graphs ------------------------------------------------------------------------------------------------------


def numbers(count):
    rng = random.Random(1337)
    return tuple(rng.gauss(0.0, 0.5) for _ in range(count))


def recurrent(inputs=2, units=4, steps=3):
    """An Elman net over a few steps, its last state added up."""
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
    """Filters slide over a signal; what is positive adds up."""

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
def test_twice_gives_the_same(name):
    """Nothing depends on an address or a hash that changes from run to run."""
    first, second = (text(reroll(TAPES[name]()).lines()) for _ in range(2))
    assert first == second
