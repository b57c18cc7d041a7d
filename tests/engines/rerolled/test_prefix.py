"""Graphs that begin a longer one: their loops are cut from its loops, and keep every bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.compiled.compiling import usable
from tests.engines.rerolled.growing import PARAMETERS, program
from tests.engines.rerolled.rolling import tape_of
from tests.engines.rerolled.test_merged import expected, passes
from tests.engines.rows import from_rows
from tests.examples import examples
from zoomgrad import engines
from zoomgrad.engines.compile import kernel_of
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.lower import form_of_passes
from zoomgrad.engines.families.lowering import lower_graphs
from zoomgrad.engines.families.prepare import BEFORE_MERGING
from zoomgrad.engines.graph.tape import NONE
from zoomgrad.engines.rerolled.merged import prefix as prefix_module
from zoomgrad.engines.rerolled.merged.merge import merge
from zoomgrad.engines.rerolled.merged.places import Unmergeable
from zoomgrad.engines.rerolled.merged.prefix import marked, prefixes
from zoomgrad.engines.rerolled.merged.shorten import Shortening, Unlike
from zoomgrad.engines.rerolled.reroll import reroll

pytestmark = pytest.mark.host


def weighted(terms, constant):
    """The tape of a weighted mean, as in the module's docstring."""
    rows = [("parameter", NONE, NONE, 0), ("input", NONE, NONE, 0), ("*", 0, 1, None)]
    total = 2
    for term in range(1, terms):
        at = len(rows)
        rows += [("input", NONE, NONE, term), ("*", 0, at, None), ("+", total, at + 1, None)]
        total = at + 2
    rows += [("constant", NONE, NONE, constant), ("*", total, len(rows), None)]
    return from_rows(rows, loss=len(rows) - 1, outputs=(), inputs=terms, parameters=1)


def shortened(tapes):
    """The loops of each tape, all cut from those of the longest."""
    found = prefixes(tapes)
    longest = max(found, key=lambda prefix: prefix.rows)
    tape, marks = marked(longest.tape, longest.end, longest.total)
    shortening = Shortening(reroll(tape), marks, found)
    return [shortening.shortened(prefix) for prefix in found]


def documented():
    """The two columns of the docstring: of tapes, and of loops."""
    lines = [line[4:] for line in prefix_module.__doc__.splitlines() if line.startswith("    ")]
    columns = [(line[:44].rstrip(), line[44:]) for line in lines]
    return ["\n".join(filter(None, column)) for column in zip(*columns)]


def test_the_example():
    tapes = [weighted(2, 0.5), weighted(3, 0.25)]
    loops = [
        [line for line in each.lines() if not line.startswith("loss") and "%" not in line] for each in shortened(tapes)
    ]
    texts = ["\n".join([*tape.lines(), *lines]) for tape, lines in zip(tapes, loops)]
    assert texts == documented()


# --- random families ---------------------------------------------------------------------------------------------


class Cut:
    """Counts the graphs whose loops were cut."""

    def __init__(self, monkeypatch):
        self.graphs, self.unlike = 0, 0
        cut = Shortening.shortened

        def shortened(shortening, prefix):
            try:
                loops = cut(shortening, prefix)
            except Unlike:
                self.unlike += 1
                raise
            self.graphs += 1
            return loops

        monkeypatch.setattr(Shortening, "shortened", shortened)


def lowered(family, lengths):
    """The graphs of a random program for texts of these lengths, and their steps."""
    graph, outputs = family
    graphs = [graph(length) for length in lengths]
    tapes = [tape_of(its, ("input",) * inputs + ("parameter",) * PARAMETERS, outputs) for its, inputs in graphs]
    form = form_of_passes(engines.load("rerolled-tcc").options, BEFORE_MERGING)
    return graphs, [step for step, _ in lower_graphs(form, tapes)]


def test_many_of_the_random_families_are_cut_and_others_are_not(monkeypatch):
    """`check_loops` runs on each: tests set ZOOMGRAD_CHECK."""
    cut, steps = Cut(monkeypatch), 0
    for seed in range(100, 140):
        steps += len(lowered(program(seed), (2, 3, 5))[1])
    assert steps // 8 < cut.graphs < steps * 7 // 8


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 7), min_size=2, max_size=4, unique=True))
def test_every_graph_has_the_bits_of_the_interpreter(seed, lengths):
    graph, outputs = program(seed)
    try:
        wanted = [expected(*graph(length), outputs) for length in sorted(lengths)]
    except (ArithmeticError, ValueError):
        return
    engine = usable("rerolled-tcc")
    graphs, steps = lowered((graph, outputs), sorted(lengths))
    try:
        merged = merge(steps)
    except Unmergeable:
        return
    kernel = kernel_of(merged, engine.options, Clock())
    for number, (its, inputs) in enumerate(graphs):
        assert passes(kernel.of_graph(number), its, inputs, merged.order.parameters, outputs) == wanted[number]


# --- what does not begin the longest tape ------------------------------------------------------------------------


def pair(added, end=(), short_end=None, outputs=((), ()), parameters=(2, 2)):
    """Prefixes of a tape of three rows, and of one that adds to its total. Ends read the total as "total"."""
    first = [("parameter", NONE, NONE, 0), ("input", NONE, NONE, 0), ("*", 0, 1, None)]
    found = []
    for rows, its_end, its_outputs, count in zip(
        (first, first + added), (end if short_end is None else short_end, end), outputs, parameters
    ):
        total = len(rows) - 1
        names = {"total": total, "next": total + 1}
        its = [*rows, *((op, names.get(a, a), names.get(b, b), number) for op, a, b, number in its_end)]
        found.append(from_rows(its, loss=len(its) - 1, outputs=its_outputs, inputs=4, parameters=count))
    return prefixes(found)


ADDED = [("input", NONE, NONE, 1), ("tanh", 3, NONE, None), ("+", 2, 4, None)]
MEAN = [("constant", NONE, NONE, 0.5), ("*", "total", "next", None)]


def test_pairs_that_begin():
    for added in (ADDED, [("tanh", 0, NONE, None), ("+", 2, 3, None)]):
        assert [prefix.additions for prefix in pair(added)] == [1, 0]
    assert [prefix.constants for prefix in pair(ADDED, MEAN, [("constant", NONE, NONE, 3.0), MEAN[1]])] == [
        (3.0,),
        (0.5,),
    ]


@pytest.mark.parametrize(
    "pair_of",
    {
        "another op in the end": lambda: pair(ADDED, [("exp", "total", NONE, None)], [("tanh", "total", NONE, None)]),
        "an operand that is missing": lambda: pair(ADDED, [("*", "total", 4, None)], [("*", "total", 1, None)]),
        "other outputs": lambda: pair(ADDED, outputs=((1,), (2,))),
        "more parameters": lambda: pair(ADDED, parameters=(1, 2)),
        "a product of the total": lambda: pair([*ADDED[:2], ("*", 2, 4, None)]),
        "the total on the right": lambda: pair([*ADDED[:2], ("+", 4, 2, None)]),
        "the total read twice": lambda: pair([("tanh", 2, NONE, None), ("+", 2, 3, None)]),
        "a first row is added": lambda: pair([("+", 2, 0, None)]),
        "a contribution to a first row": lambda: pair(
            [
                ("input", NONE, NONE, 1),
                ("+", 0, 3, None),
                ("constant", NONE, NONE, 3.0),
                ("*", 4, 5, None),
                ("+", 2, 6, None),
            ]
        ),
        "a sum with a first row": lambda: pair([*ADDED[:2], ("+", 4, 0, None), ("+", 2, 5, None)]),
        "a product with a constant": lambda: pair(
            [("constant", NONE, NONE, 3.0), ("*", 0, 3, None), ("+", 2, 4, None)]
        ),
        "equal tapes": lambda: prefixes([weighted(3, 0.5), weighted(3, 0.5)]),
        "another weight": lambda: prefixes([weighted(3, 0.5), replace(weighted(5, 0.5), parameters=2)]),
    }.items(),
    ids=lambda item: item[0],
)
def test_tapes_that_do_not_begin_another(pair_of):
    assert pair_of[1]() == [None, None]
