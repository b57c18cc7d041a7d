"""Merged loops: every graph of a family finds its own loops in them, and the C of all has the bits of each."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import Graph, bits
from tests.engines.rerolled.rolling import of_form, tape_of, text
from tests.engines.rerolled.test_waves import MIXES
from tests.examples import examples
from zoomgrad import engines
from zoomgrad.engines.api import Store
from zoomgrad.engines.compile import kernel_of
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.lower import form_of_passes, lower_passes, passes_of
from zoomgrad.engines.families.prepare import merged as merged_loops
from zoomgrad.engines.rerolled.fitted import SCALARS, VECTORS
from zoomgrad.engines.rerolled.merged import align as aligning
from zoomgrad.engines.rerolled.merged.check import check_merged
from zoomgrad.engines.rerolled.merged.merge import merge
from zoomgrad.engines.rerolled.merged.places import NONE
from zoomgrad.engines.rerolled.merged.table import Table
from zoomgrad.engines.rerolled.merged.table import number as number_of
from zoomgrad.engines.rerolled.recover.check import BrokenLoops
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

SMALL = "microgpt-L1-D4-H2-T4"


def step_of(graph, inputs, parameters):
    tape = tape_of(graph, ("input",) * inputs + ("parameter",) * parameters, (-1,))
    return lower_passes(tape, engines.load("rerolled-tcc").options)


def mean(length, inputs=8):
    """The mean of some inputs, each with its own weight. Weights beyond them are not used."""

    def build(Value, leaves):
        x, p = leaves[:length], leaves[length:]
        return [sum((a * b for a, b in zip(x, p)), Value(0.0)) * (1 / length)]

    return step_of(Graph("mean", (0.5,) * (length + inputs), build), length, inputs)


def test_text():
    """The example of the package."""
    assert text(merge([mean(5), mean(8)]).lines()) == (
        "v[0] = sum(t<c0: x[t] * p[t])\n"
        "v[1] = v[0] * d0\n"
        "y[0] = v[1]\n"
        "g[0] = d0 * 1.0\n"
        "for i<c0: q[i] += x[i] * g[0]\n"
        "loss v[1]\n"
        "graph  c0     d0\n"
        "0       5    0.2\n"
        "1       8  0.125\n"
    )


@pytest.mark.parametrize(
    ("rounds", "written", "from_100_on"),
    [
        ([[8, 8, 8], [8, 8]], "8", "108"),
        ([[4, 4, 4], [6, 6]], "c0", "100 + c0"),
        ([[8, 24, 40], [8, 24]], "8 + 16*n", "108 + 16*n"),
        ([[8, 7], [8]], "8 - n", "108 - n"),
        ([[8, 24, 40], [2, 5]], "c0 + c1*n", "100 + c0 + c1*n"),
        ([[1, 7, 9], [1, 7]], "at(n)", "100 + at(n)"),
        ([[1, 7, 9], [3, 2]], "c0[n]", "100 + c0[n]"),
        ([[5], []], "5", "105"),
    ],
)
def test_how_a_number_varies(rounds, written, from_100_on):
    table = Table(2)
    number = number_of(rounds, table)
    assert str(number.text(0, lambda _, name: f"at({name})")) == written
    assert [[number.at(row, n) for n in range(len(its))] for row, its in zip(table.rows, rounds)] == rounds
    assert str(number.text(100, lambda _, name: f"at({name})")) == from_100_on


@given(st.lists(st.text("abc", max_size=12), min_size=1, max_size=4))
def test_every_graph_finds_its_loops_in_order(graphs):
    """Letters stand for loops and their kinds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligning, "_runs", lambda loops, known: _runs_of(loops))
        found = aligning.align(graphs, None)
    for graph, loops in enumerate(graphs):
        assert "".join(letter for each in found for letter in each.loops[graph]) == loops
    assert all(any(each.loops) for each in found)


def _runs_of(letters):
    runs = []
    for letter in letters:
        if runs and runs[-1][0] == ord(letter):
            runs[-1][1].append(letter)
        else:
            runs.append((ord(letter), [letter]))
    return runs


# --- random families ---------------------------------------------------------------------------------------------


def text_family(seed, layers, lengths):
    """Networks over positions, with layers of shared weights and a bias for each position; one for each length."""
    rng = random.Random(seed)
    width, most = rng.randint(2, 5), max(lengths)
    mixes = [rng.choice([*MIXES, "attention"]) for _ in range(layers)]
    count = width * width * layers + width * most
    parameters = [rng.gauss(0.0, 0.5) for _ in range(count)]

    def graph(length):
        def build(Value, leaves):
            x, p = leaves[: length * width], leaves[length * width :]
            biases = p[width * width * layers :]
            states = [
                [a + b for a, b in zip(x[t * width :], biases[t * width : (t + 1) * width])] for t in range(length)
            ]
            for at, mix in enumerate(mixes):
                rows = [p[(at * width + n) * width : (at * width + n + 1) * width] for n in range(width)]
                mixed = [MIXES[mix](states[: t + 1]) for t in range(length)]
                states = [[sum(w * v for w, v in zip(row, each)).tanh() for row in rows] for each in mixed]
            loss = sum(v * v for state in states for v in state) * (1 / length)
            return [x[0], p[0], biases[-1], *states[0], *states[-1], loss]

        inputs = [rng.gauss(0.0, 0.7) for _ in range(length * width)]
        return Graph(f"{mixes} {width}", (*inputs, *parameters), build), length * width

    outputs = tuple(rng.sample(range(5 + 2 * width), rng.randint(0, 4)))
    return [graph(length) for length in lengths], count, outputs


families = st.builds(
    text_family,
    st.integers(0, 10**6),
    st.integers(1, 2),
    st.lists(st.integers(1, 9), min_size=2, max_size=4, unique=True),
)


def merged_of(engine, family):
    graphs, parameters, outputs = family
    kinds = [("input",) * inputs + ("parameter",) * parameters for _, inputs in graphs]
    form, tapes = form_of_passes(engine.options), [tape_of(graph, k, outputs) for (graph, _), k in zip(graphs, kinds)]
    return merge([passes_of(reroll(tape), form) for tape in tapes])


PASSES = 2
"""Passes that add to the same gradients, as the rows of a batch do."""


def passes(kernel, graph, inputs, order, outputs):
    """The loss, outputs and gradients of one graph, of a kernel that keeps parameters in that order."""
    numbers = graph.numbers
    x = array("d", [*numbers[:inputs], *[0.0] * 16])
    p = array("d", [0.0 if index == NONE else numbers[inputs + index] for index in order])
    q, y, w = array("d", bytes(8 * len(p))), array("d", [0.0] * len(outputs)), kernel.workspace()
    for place in range(len(w)):
        w[place] = 1e300  # what another graph may have left there
    for _ in range(PASSES):
        loss = kernel.forward(x, p, w, y)
        kernel.backward(x, p, w, q)
    assert not any(gradient for gradient, index in zip(q, order) if index == NONE), "a gap has a gradient"
    found = array("d", bytes(8 * (len(numbers) - inputs)))
    for gradient, index in zip(q, order):
        if index != NONE:
            found[index] = gradient
    return bits([loss, *y, *found])


def expected(graph, inputs, outputs):
    leaves = [engines.load("tuple").Value(number) for number in graph.numbers]
    for _ in range(PASSES):
        values = graph.build(engines.load("tuple").Value, leaves)
        values[-1].backward()
    found = [values[index % len(values)].data for index in outputs]
    return bits([values[-1].data, *found, *(leaf.grad for leaf in leaves[inputs:])])


def hunt(engine, count):
    """Compile random families, and compare every graph with the interpreter."""

    @settings(max_examples=examples(count), deadline=None)
    @given(families)
    def agrees(family):
        merged = merged_of(engine, family)
        kernel = kernel_of(merged, engine.options, Clock())
        for number, (graph, inputs) in enumerate(family[0]):
            found = passes(kernel.of_graph(number), graph, inputs, merged.order.parameters, family[2])
            assert found == expected(graph, inputs, family[2])

    agrees()


@pytest.mark.parametrize(
    ("compiler", "form", "count"),
    [("tcc", SCALARS, 40), ("gcc", replace(VECTORS, width=4, units=1), 6), ("clang", VECTORS, 6)],
)
def test_c_has_the_bits_of_each_graph(compiler, form, count):
    usable(f"rerolled-{compiler}")
    hunt(of_form(compiler, form), count)


# --- what is refused, checked and kept ---------------------------------------------------------------------------


def test_a_wrong_number_is_found():
    steps = [mean(5), mean(8)]
    merged = merge(steps)
    graphs = [list(merged.of_graph(graph)) for graph in range(2)]
    losses = [merged.loss_of_graph(graph) for graph in range(2)]
    assert check_merged(merged, graphs, losses) is merged
    for row in merged.table.rows:
        row[0] += 1
        with pytest.raises(BrokenLoops, match=r"graph [01], loop 0"):
            check_merged(merged, graphs, losses)
        row[0] -= 1
    for loops, places in (([graphs[1], graphs[0]], losses), ([graphs[0], graphs[1][:-1]], losses), (graphs, [0, 0])):
        with pytest.raises(BrokenLoops):
            check_merged(merged, loops, places)


def test_a_family_has_one_kernel_in_a_store(tmp_path):
    """The second training loads it, with the bits of the first."""
    workload, engine = workloads.load(SMALL), usable("rerolled-tcc")
    trained = []
    for _ in range(2):
        trainer = engine.prepare(workload, objects=Store(tmp_path / "objects", 0.0))
        trainer.train(9)
        trained.append([trainer.losses, trainer.parameters(), trainer.gradients(), trainer.predict(workload.row(1))])
        assert len(list((tmp_path / "objects").iterdir())) == 1
    assert trained[0] == trained[1]
    assert not trainer.phases


def test_the_listing_in_the_docs():
    """Each line in docs/loops.md is in the merged loops of microgpt."""
    page = (Path(__file__).parents[3] / "docs" / "loops.md").read_text(encoding="utf-8")
    (listing,) = (part for part in page.split("```\n") if part.startswith("for i<c0"))
    lines = list(merged_loops(workloads.load("microgpt"), usable("rerolled-clang").options).lines())
    assert all(line in lines for line in listing.splitlines())
