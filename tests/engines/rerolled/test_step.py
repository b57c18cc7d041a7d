"""The step form: its golden text, the checker's refusals, and equal bits from every back end."""

from __future__ import annotations

import itertools
from array import array
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import compiled, engine_of, usable
from tests.engines.graphs import bits, classifier
from tests.engines.rerolled.rolling import form, of_form, step_of, tape_of, text
from zoomgrad import engines
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.machine import section
from zoomgrad.engines.rerolled import step
from zoomgrad.engines.rerolled.emit import c_section
from zoomgrad.engines.rerolled.rearrange import weight_reuse, whole_batches
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.check import check_step
from zoomgrad.engines.rerolled.step.language import Perform, rewrite
from zoomgrad.engines.rerolled.step.ways import BrokenStep

pytestmark = pytest.mark.host

FORMS = {
    "plain": replace(form(), rearrangements=()),
    "in place": form(rows=0),
    "deferred": form(),
    "together": form(rows=2),
    "zeros": form(rows=0, sparse=True),
    "everything": form(rows=2, sparse=True),
}


@pytest.fixture(autouse=True)
def nothing_is_too_small(monkeypatch):
    for module in (weight_reuse, whole_batches):
        monkeypatch.setattr(module, "MANY", 1)


def classified(name):
    graph, kinds = classifier()
    return step_of(tape_of(graph, kinds, [0, 1, 2]), FORMS[name])


@pytest.mark.parametrize("name", ["plain", "together", "everything"])
def test_text(golden, name):
    golden(f"rerolled-step-{name}.txt", text(classified(name).lines()))


# --- the same bits ---------------------------------------------------------------------------------------------------


def engine_for(name):
    """Return an engine that runs the form: NumPy if it can, else C."""
    if name in ("plain", "in place"):
        return engine_of("", FORMS[name], code="loops", target="NumPy")
    return usable(of_form("tcc", FORMS[name]))


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("name", FORMS)
def test_a_step_trains_like_straight_line_code(name, batch):
    graph, kinds = classifier()
    inputs = kinds.count("input")
    rows = array("d", [(7 * at % 11 - 5) / 4 * (at % 3 != 0) for at in range(inputs * 7)])
    trained = []
    for engine in (usable("tcc"), engine_for(name)):
        program = compiled(engine, graph, kinds, graph.numbers, [0, 1, 2]).program
        # The second call continues a partial batch.
        losses = [program.train(rows, rate=0.1, batch=batch, steps=steps, first_row=2) for steps in (8, 11)]
        ends = (*losses, program.parameters, program.gradients, program.inputs, program.outputs)
        trained.append([bits(numbers) for numbers in ends])
    assert trained[0] == trained[1]


def test_the_back_ends_know_every_statement():
    """NumPy needs fewer: it runs no rows together, defers nothing and skips nothing."""
    in_c = {*c_section._PLAIN, *c_section.Section._WRITERS}
    # Machine code has one thread, and `MachineKernel` does what `enter` says.
    in_machine_code = {*section.Section._WRITERS, steps.Divided, steps.Take}
    assert in_c == in_machine_code == {*steps.STATEMENTS}


# --- the checker -----------------------------------------------------------------------------------------------------


def without(step, statement):
    """Return the step without that statement in its turn."""
    turn = rewrite(step.programs["turn"], lambda s: () if s == statement else (s,))
    assert turn != step.programs["turn"], f"there is no {statement}"
    return step.with_programs(turn=turn)


def without_run(step, routine, at=0):
    runs = step.routines[routine]
    return step.with_routine(routine, runs[:at] + runs[at + 1 :])


def never_settled(step):
    return step.with_programs(leave=step.programs["leave"][1:])


def in_every_row(step):
    """Make updates in place for rows that are not alone in their batch."""
    turn = rewrite(
        step.programs["turn"],
        lambda s: (
            (replace(s, then=s.otherwise, otherwise=s.then),)
            if isinstance(s, steps.If) and s.condition == steps.Alone()
            else (s,)
        ),
    )
    return step.with_programs(turn=turn)


def nothing_for_those_before(step):
    return without(step, steps.KeepEarlier())


def made_twice(step):
    return without(step, steps.Set(steps.DUE, False))


BROKEN = {
    "a row is not taken": ("plain", lambda s: without(s, steps.TakeRow()), "before a row is taken"),
    "no guard": ("plain", lambda s: without(s, steps.Guard()), "before the loss is recorded"),
    "a lost sink": ("in place", lambda s: without_run(s, "sinks in place"), "it ends without loops"),
    "no update": ("plain", lambda s: without(s, steps.Update()), "a batch ends without an update"),
    "in place although a batch has several rows": ("in place", in_every_row, "alone"),
    "an update that waits is lost": ("deferred", never_settled, "leave: an update still waits"),
    "an update that waits is applied twice": (
        "deferred",
        made_twice,
        "the flag says that an update waits",
    ),
    "no list of inputs": ("zeros", lambda s: without(s, steps.ListInputs()), "without a list of this row's"),
    "factors are not checked": ("zeros", lambda s: without(s, steps.CheckFactors()), "factors are not checked"),
    "rows before a failing one are lost": (
        "together",
        nothing_for_those_before,
        "rows before one that fails lose a sink",
    ),
    "weights of a whole batch are updated twice": ("together", lambda s: updating_all(s), "updated twice"),
    "a whole batch is updated with each row": ("together", lambda s: with_each_row(s), "before it has added all rows"),
    "weights are measured too early": ("everything", lambda s: unsettled(s), "waits"),
}


def updating_all(step):
    """Let every update include the parameters of sinks that ran in place."""
    turn = rewrite(step.programs["turn"], lambda s: (steps.Update(),) if isinstance(s, steps.Update) else (s,))
    return step.with_programs(turn=turn)


def with_each_row(step):
    """Let the sinks of each of the rows taken together update in place."""
    (name,) = (name for name in step.routines if name.startswith("sinks but"))
    return step.with_routine(name, [replace(run, in_place=True) for run in step.routines[name]])


def unsettled(step):
    """Make weights measured while their update waits."""
    turn = rewrite(step.programs["turn"], lambda s: () if s == Perform("settle") else (s,))
    return step.with_programs(turn=turn)


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_step_is_refused(what):
    name, broken, message = BROKEN[what]
    step = classified(name)
    check_step(step)
    with pytest.raises(BrokenStep, match=message):
        check_step(broken(step))


def test_the_docstring_example_is_correct():
    """The example has two columns: the plain turn, and the one with updates in place."""
    engine = engines.load("rerolled-numpy")
    w, x = engine.Value(2.0), engine.Value(3.0)
    tape = Graph(w * x, [x], [w]).tape()
    printed = [text(step_of(tape, FORMS[name]).lines()) for name in ("plain", "in place")]
    turns = [each[each.index("turn:\n") : each.index("evaluate:\n")].splitlines() for each in printed]
    table = [f"    {left:40}{right}".rstrip() for left, right in itertools.zip_longest(*turns, fillvalue="")]
    assert "\n".join(table) in step.__doc__
    assert all(line.strip() in step.__doc__ for line in reroll(tape).lines() if "[0] " in line)
