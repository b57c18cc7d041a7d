"""Networks that one graph applies at several positions: their copies share loops, and keep the bits."""

from __future__ import annotations

import functools

import pytest
from hypothesis import strategies as st

from tests.engines.compiled.compiling import usable
from tests.engines.rerolled.tempting import case, seeds
from tests.engines.rerolled.test_tempting import hunt
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.rerolled.recover.loops import Phase
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step.spans import reads
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host


def attention(states):
    scores = [sum(a * b for a, b in zip(states[-1], state)) for state in states]
    peak = functools.reduce(lambda a, b: a.max(b), scores)
    exps = [(score - peak).exp() for score in scores]
    total = sum(exps)
    return [sum(e / total * v for e, v in zip(exps, column)) for column in zip(*states)]


MIXES = {
    "sum": lambda states: [sum(column) for column in zip(*states)],
    "largest": lambda states: [functools.reduce(lambda a, b: a.max(b), column) for column in zip(*states)],
    "product": lambda states: [functools.reduce(lambda a, b: (a * b).tanh(), column) for column in zip(*states)],
    "attention": attention,
}
"""What a position makes of its own state, the last one, and those of all earlier positions."""


def text_network(rng, layers, length):
    """Return a case with layers of shared weights at each position; between them, positions see the earlier ones."""
    width, recurrent, skips = rng.randint(1, 4), rng.random() < 0.3, rng.random() < 0.5
    mixes = [rng.choice([*MIXES, "attention"]) for _ in range(layers)]
    count = layers * width * width + length * width

    def layer(p, at, x):
        rows = [p[(at * width + n) * width : (at * width + n + 1) * width] for n in range(width)]
        return [sum(w * v for w, v in zip(row, x)).tanh() for row in rows]

    def build(Value, leaves):
        x, p = leaves[: length * width], leaves[length * width :]
        own = p[layers * width * width :]
        states = [[a + b for a, b in zip(x[t * width :], own[t * width : (t + 1) * width])] for t in range(length)]
        for at, mix in enumerate(mixes):
            made = []
            for t in range(length):
                seen = [*made, states[t]] if recurrent else states[: t + 1]
                mixed = layer(p, at, MIXES[mix](seen))
                made.append([a + b for a, b in zip(mixed, states[t])] if skips else mixed)
            states = made
        losses = [sum(v * v for v in state) for state in states]
        return [*(v for state in states for v in state), sum(losses) * (1 / length)]

    kinds = ("input",) * (length * width) + ("parameter",) * count
    name = f"text_network({layers=}, {length=}, {width=}, {recurrent=}, {skips=}, {mixes=})"
    return case(rng, name, kinds, build, tuple(rng.sample(range(99), rng.randint(0, 3))))


texts = st.builds(text_network, seeds, st.integers(1, 2), st.integers(1, 6))


@pytest.mark.parametrize("name", ["rerolled-numpy", "rerolled-tcc"])
def test_positions_keep_the_reference_bits(name):
    hunt(usable(name), texts, 30)


def multiplied(workload, positions):
    """Return how many forward loops read parameters, in the graph of a row with that many positions."""
    (shape,) = [shape for shape in workload.shapes() if len(shape.columns) == 2 * positions]
    loops = reroll(trace(workload, workload.row(shape.rows[0])).tape())
    p = loops.area("p")
    forward = [loop for loop in loops.loops if loop.phase == Phase.FORWARD]
    return sum(reads(loop, (p.start, p.stop)) for loop in forward)


@pytest.mark.parametrize("layers", [1, 2])
def test_each_matrix_is_multiplied_once_for_all_positions(layers):
    workload = workloads.load(f"microgpt-L{layers}-D4-H2-T9")
    # Embeddings, the output, and four matrices in each layer.
    assert multiplied(workload, 4) == multiplied(workload, 9) == 2 + 4 * layers
