"""Graphs that begin a longer one: their loops are cut from its loops, and keep every bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numpy")

import numpy as np

import engines
from engines.graph.tape import NONE, names
from engines.kernel.engine import Clock, Order
from engines.rerolled import lowering
from engines.rerolled.engine import reroll
from engines.rerolled.family import BEFORE_MERGING
from engines.rerolled.lowering import lower_graphs
from engines.rerolled.merged.merge import merge
from engines.rerolled.merged.places import Unmergeable
from engines.rerolled.recover import prefix as prefix_module
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Loop, Segment, Table
from engines.rerolled.recover.prefix import marked, prefixes
from engines.rerolled.recover.shorten import Shortening, Unlike, _cut, _Nest
from engines.rerolled.recover.sums import IDENTITY
from harness import workloads
from tests.engines.compiled.compiling import usable
from tests.engines.rerolled.growing import PARAMETERS, program
from tests.engines.rerolled.rolling import tape_of
from tests.engines.rerolled.test_merged import expected, passes
from tests.engines.rows import from_rows
from tests.examples import examples


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


def test_what_the_example_shares():
    short, longest = prefixes([weighted(2, 0.5), weighted(3, 0.25)])
    assert (short.rows, short.end, short.total, short.additions) == (6, 9, 8, 1)
    assert (short.inputs.tolist(), short.constants) == ([0, 1, NONE], (0.5,))
    assert (longest.rows, longest.end, longest.total, longest.additions) == (11, 9, 8, 0)


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
    form = engines.load("rerolled-tcc").form_of_passes(BEFORE_MERGING)
    return graphs, [step for step, _ in lower_graphs(form, tapes)]


def test_many_of_the_random_families_are_cut_and_others_are_not(monkeypatch):
    """`check_loops` runs on each: tests set ZOOMGRAD_CHECK."""
    cut, steps = Cut(monkeypatch), 0
    for seed in range(100, 200):
        steps += len(lowered(program(seed), (2, 3, 5))[1])
    assert steps // 8 < cut.graphs < steps * 7 // 8


@pytest.mark.host
@settings(max_examples=examples(60), deadline=None)
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
    kernel = engine._build(merged, Clock(), Order(None))
    for number, (its, inputs) in enumerate(graphs):
        assert passes(kernel.of_graph(number), its, inputs, merged.order.parameters, outputs) == wanted[number]


def test_all_graphs_of_microgpt_are_cut(monkeypatch):
    cut = Cut(monkeypatch)
    engine, workload = engines.load("rerolled-tcc"), workloads.load("microgpt-L2-D4-H2-T5")
    monkeypatch.setattr(lowering, "lower_passes", None)
    engine.merged(workload)
    assert (cut.graphs, cut.unlike) == (3, 0)


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
        "another exponent in the end": lambda: pair(ADDED, [("**", "total", NONE, 2)], [("**", "total", NONE, 3)]),
        "another parameter in the end": lambda: pair(
            ADDED,
            [("parameter", NONE, NONE, 1), ("*", "total", "next", None)],
            [("parameter", NONE, NONE, 0), ("*", "total", "next", None)],
        ),
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
        "a total that is a parameter": lambda: prefixes(
            [
                from_rows([("parameter", NONE, NONE, 0)], loss=0, outputs=(), inputs=1, parameters=1),
                from_rows(
                    [("parameter", NONE, NONE, 0), ("input", NONE, NONE, 0), ("+", 0, 1, None)],
                    loss=2,
                    outputs=(),
                    inputs=1,
                    parameters=1,
                ),
            ]
        ),
        "equal tapes": lambda: prefixes([weighted(3, 0.5), weighted(3, 0.5)]),
        "another weight": lambda: prefixes([weighted(3, 0.5), replace(weighted(5, 0.5), parameters=2)]),
    }.items(),
    ids=lambda item: item[0],
)
def test_tapes_that_do_not_begin_another(pair_of):
    assert pair_of[1]() == [None, None]


def test_another_end_than_that_of_the_first():
    """The second graph squares what the others multiply by a constant."""
    short, longest = weighted(2, 0.5), weighted(5, 0.5)
    rows = [(names()[op], *operands) for op, *operands in zip(longest.ops, longest.left, longest.right)][:14]
    numbers = [longest.number(row) for row in range(14)]
    squared = from_rows(
        [*((*row, number) for row, number in zip(rows, numbers)), ("*", 11, 11, None)],
        loss=14,
        outputs=(),
        inputs=5,
        parameters=1,
    )
    assert [prefix is not None for prefix in prefixes([short, squared, longest])] == [True, False, True]


# --- what can't be cut -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "kept"),
    [
        ([0, 0, 1, 2], ((0, 3),)),
        ([2, 1, 1, 0], ((1, 3),)),
        ([2, 2, 2, 2], None),
        ([[0, 0], [1, 1], [2, 2]], ((0, 2), (0, 2))),
        ([[0, 1], [2, 2]], ((0, 1), (0, 2))),
        ([[2, 1], [2, 2]], ((0, 1), (1, 1))),
    ],
)
def test_ranges_up_to_level_one(levels, kept):
    assert _Nest(np.array(levels).reshape(-1), np.shape(levels)).kept(1) == kept


@pytest.mark.parametrize("levels", [[0, 2, 0], [[0, 1], [1, 2]], [[0, 2], [2, 0]]])
def test_what_is_no_range(levels):
    with pytest.raises(Unlike):
        _Nest(np.array(levels).reshape(-1), np.shape(levels)).kept(1)


@pytest.mark.parametrize(
    ("phase", "stride", "lanes", "room"),
    [
        (Phase.FORWARD, 1, ((0, 6),), 8),
        (Phase.FORWARD, 1, ((0, 4),), 8),
        (Phase.FORWARD, 1, ((2, 4),), 6),
        (Phase.FORWARD, 2, ((0, 4),), 4),
        (Phase.SINK, 1, ((0, 4),), 4),
    ],
)
def test_the_room_of_a_cut_loop(phase, stride, lanes, room):
    """Gradients of parameters that the graph does not use stay as they are."""
    loop = Loop(phase, (6,), Access(40, (stride,)), 8, (Segment(IDENTITY, (), (Access(8, (1,)),)),))
    found = _cut(loop, lanes, [()])
    start, count = lanes[0]
    assert (found.counts, found.room, found.target.base) == ((count,), room, 40 + stride * start)
    assert found.segments[0].operands == (Access(8 + start, (1,)),)


def test_a_list_of_offsets_is_cut():
    loop = Loop(Phase.FORWARD, (3,), Access(40, ((0, 5, 7),)), 3, (Segment(IDENTITY, (), (Access(8, (1,)),)),))
    assert _cut(loop, ((1, 2),), [()]).target == Access(45, ((0, 2),))


def test_a_table_is_not_cut():
    segment = Segment(IDENTITY, (), (Table(np.zeros((6, 1), int)),))
    with pytest.raises(Unlike, match="table"):
        _cut(Loop(Phase.FORWARD, (6,), Access(40, (1,)), 6, (segment,)), ((0, 4),), [()])


def test_inputs_in_another_order():
    """The longest graph reads the inputs one after the other, and the shorter one in reverse."""
    tapes = [weighted(6, 0.5), weighted(9, 0.25)]
    short, longest = prefixes(tapes)
    tape, marks = marked(longest.tape, longest.end, longest.total)
    shortening = Shortening(reroll(tape), marks, [short, longest])
    assert shortening.shortened(short)
    for inputs in ([5, 4, 3, 2, 1, 0, *[NONE] * 3], [0, 1, 2, NONE, 4, 5, *[NONE] * 3]):
        with pytest.raises(Unlike, match="input"):
            shortening.shortened(short._replace(inputs=np.array(inputs)))


def test_a_total_with_other_terms():
    short, longest = prefixes([weighted(6, 0.5), weighted(9, 0.25)])
    tape, marks = marked(longest.tape, longest.end, longest.total)
    with pytest.raises(Unlike, match="other terms"):
        Shortening(reroll(tape), marks, [short, longest]).shortened(short._replace(additions=2))


def test_a_total_that_the_end_adds_to_keeps_a_place():
    """Else its missing terms could not be told from those of the end, and this one reads nothing missing."""
    rows = [("parameter", NONE, NONE, 0), ("input", NONE, NONE, 0), ("*", 0, 1, None)]
    added = [("constant", NONE, NONE, 0.25), ("+", 2, 3, None)]
    tapes = []
    for first in (rows, rows + added):
        at = len(first)
        its = [*first, ("parameter", NONE, NONE, 1), ("+", at - 1, at, None)]
        tapes.append(from_rows(its, loss=at + 1, outputs=(), inputs=1, parameters=2))
    assert None not in prefixes(tapes)
    with pytest.raises(Unlike, match="total"):
        shortened(tapes)


def test_outputs_are_those_of_the_graph():
    """An input as an output is found where the graph has it."""
    short, longest = prefixes([weighted(6, 0.5), weighted(9, 0.25)])
    tape, marks = marked(replace(longest.tape, outputs=(1,)), longest.end, longest.total)
    short = short._replace(tape=replace(short.tape, outputs=(1,)), inputs=np.array([3, 4, 5, 0, 1, 2, *[NONE] * 3]))
    with pytest.raises(Unlike, match="order"):
        Shortening(reroll(tape), marks, [short, longest]).shortened(short)
    moved = short._replace(inputs=np.array([*range(2, 8), *[NONE] * 3]))
    assert Shortening(reroll(tape), marks, [moved, longest]).shortened(moved).outputs == (Access(2, ()),)


def test_an_output_that_the_graph_lacks():
    short, longest = prefixes([weighted(6, 0.5), weighted(9, 0.25)])
    missing = longest.tape.ops.rindex(names().index("+"), 0, longest.total) - 1
    tape, marks = marked(replace(longest.tape, outputs=(missing,)), longest.end, longest.total)
    short = short._replace(tape=replace(short.tape, outputs=(missing,)))
    with pytest.raises(Unlike):
        Shortening(reroll(tape), marks, [short, longest]).shortened(short)


def test_marks_are_new_numbers():
    """Also where the end has numbers that other rows have."""
    tape = from_rows(
        [
            ("constant", NONE, NONE, 2.0),
            ("input", NONE, NONE, 0),
            ("*", 0, 1, None),
            ("constant", NONE, NONE, 3),
            ("*", 2, 3, None),
        ],
        loss=4,
        outputs=(),
        inputs=1,
        parameters=0,
    )
    found, marks = marked(tape, 3, 2)
    assert [found.number(row) for row in (0, 3)] == [2.0, *marks]
    assert (marks, found.outputs) == ([4.0], (2,))
