"""Regular tapes become loops with little code. Irregular ones, whose sums are in no loop that pays, become lines."""

from __future__ import annotations

import random

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import BINARY, UNARY, Graph, call, classifier
from tests.engines.rerolled.rolling import REROLLED, step_of, tape_of, tape_of_workload
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower, sizes
from zoomgrad.engines.compiled.trace import Graph as Trace
from zoomgrad.engines.rerolled.emit.c import c_source
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.freeze import passes_only
from zoomgrad.engines.rerolled.recover.loops import Phase
from zoomgrad.engines.rerolled.reroll import MANY, reroll, reroll_regular
from zoomgrad.engines.rerolled.step.spans import reads
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.straight.lower import Code
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

SAFE = [name for name in (*UNARY, *BINARY) if name not in ("div", "log", "exp")]


def entry(rng, leaves, depth):
    """An expression of random form."""
    if not depth or rng.random() < 0.2:
        return rng.choice(leaves)
    operation = rng.choice(SAFE)
    operands = [entry(rng, leaves, depth - 1) for _ in range(1 + (operation in BINARY))]
    return call(operation, operands[0], operands[-1])


def entries(count, depth=4, seed=1):
    """A graph of the sum of that many entries over 12 leaves, and the kinds of these."""
    numbers = tuple(random.Random(seed).uniform(-1, 1) for _ in range(12))

    def build(Value, leaves):
        rng = random.Random(seed)
        return [sum((entry(rng, leaves, depth) for _ in range(count)), Value(0.0)) * (1 / count)]

    return Graph(f"{count} entries", numbers, build), ["input"] * 4 + ["parameter"] * 8


def beside_a_network(count):
    """A network whose loss has that many entries added to it."""
    network, kinds = classifier(inputs=60, hidden=40, classes=10)

    def build(Value, leaves):
        rng = random.Random(2)
        *outputs, loss = network.build(Value, leaves)
        return [*outputs, sum((entry(rng, leaves[-20:], 4) for _ in range(count)), loss)]

    return Graph("a network and entries", network.numbers, build), kinds


def lowered(tape):
    return lower(tape, usable("rerolled-tcc").options)


@pytest.mark.parametrize("name", [name for name in REROLLED if "machine" not in name])
def test_irregular_tapes_are_straight_lines(name):
    engine = usable(name)
    code = lower(tape_of(*entries(400)), engine.options)
    assert isinstance(code, Code)
    assert sizes(code, engine.options)["looped_share"] == 0.0


def test_a_chain_of_single_values_is_straight_lines():
    def build(Value, leaves):
        x = leaves[0]
        for step in range(200):
            x = x * 1.0001 if step % 2 else x + leaves[0]
        return [x]

    assert isinstance(lowered(tape_of(Graph("chain", (1.0,), build), ["parameter"])), Code)


def test_a_narrow_recurrence_keeps_its_loops():
    def build(Value, leaves):
        row = leaves[:2]
        for _ in range(400):
            row = [(leaves[2] * row[0] + leaves[3] * row[1]).tanh(), (leaves[4] * row[0] + leaves[5] * row[1]).tanh()]
        return [row[0] * row[1]]

    kinds = ["input"] * 2 + ["parameter"] * 4
    assert lowered(tape_of(Graph("recurrence", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), build), kinds)).loops.coverage > 0.9


def test_a_network_beside_irregular_sums_keeps_its_loops():
    step = lowered(tape_of(*beside_a_network(100)))
    assert isinstance(step, Step)
    assert len(step.loops.loops) > MANY
    assert step.loops.coverage > 0.5


LOOPS = {"recurrent": 100, "conv-1d": 20, "conv-2d": 60, "attention": 70, "polynomial": 60, "shuffled": 60}
LOOPS |= {"digits": 60, "moons": 30, "tour": 30, "mlp-784x50x10": 20}
"""A workload -> the most loops that its graph may become."""


@pytest.mark.parametrize(("name", "most"), LOOPS.items())
def test_regular_graphs_become_loops(name, most):
    loops = reroll_regular(tape_of_workload(workloads.load(name)))
    assert loops.coverage >= (0.95 if name == "tour" else 0.99)
    assert len(loops.loops) <= most


# --- networks at several positions -------------------------------------------------------------------------------


def gpt(name, positions):
    """Return the tape of that GPT for a name with one letter less than positions."""
    workload = workloads.load(name)
    (shape,) = [shape for shape in workload.shapes() if len(shape.columns) == 2 * positions]
    return tape_of_workload(workload, workload.row(shape.rows[0]))


def multiplied(loops):
    """Return how many forward loops read parameters."""
    p = loops.area("p")
    return sum(bool(reads(loop, (p.start, p.stop))) for loop in loops.loops if loop.phase == Phase.FORWARD)


@pytest.mark.parametrize("layers", [1, 2])
def test_each_matrix_is_multiplied_once_for_all_positions(layers):
    """Embeddings, the output, and four matrices in each layer."""
    found = [multiplied(reroll(gpt(f"microgpt-L{layers}-D4-H2-T9", positions))) for positions in (4, 9)]
    assert found == [2 + 4 * layers] * 2


def test_more_positions_take_little_more_code():
    """The C for 16 positions is at most 1.3 times as long as that for 4."""
    rounds = Form(width=8, rearrangements=("in rounds",))
    small, large = (c_source(passes_only(step_of(gpt("microgpt", n), rounds)), rounds).size for n in (4, 16))
    assert large < 1.3 * small


def test_constants_do_not_add_statements():
    """gcc takes milliseconds for a statement, so many different constants are a table and a loop."""
    engine = usable("rerolled-tcc")

    def statements(number):
        p, x = engine.Value(0.3), engine.Value(0.7)
        loss = sum((p * x - number(i)) ** 2 for i in range(300))
        return text_of(lower(Trace(loss, [x], [p]).tape(), engine.options), engine.options).count(";")

    assert abs(statements(lambda i: 0.01 * i + 0.005) - statements(lambda i: 0.5)) < 20
