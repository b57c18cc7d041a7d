"""The step form: its golden text, and the checker's refusals. `test_tempting` compares the bits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tests.engines.graphs import classifier
from tests.engines.rerolled.rolling import form, step_of, tape_of, text
from zoomgrad import engines
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.machine import section
from zoomgrad.engines.rerolled import step
from zoomgrad.engines.rerolled.emit import c_section
from zoomgrad.engines.rerolled.rearrange import weight_reuse, whole_batches
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.check import BrokenStep, check_step

pytestmark = pytest.mark.host

FORMS = {
    "plain": replace(form(), rearrangements=()),
    "in place": form(rows=0),
    "everything": form(rows=2, sparse=True),
}


@pytest.fixture(autouse=True)
def nothing_is_too_small(monkeypatch):
    for module in (weight_reuse, whole_batches):
        monkeypatch.setattr(module, "MANY", 1)


def classified(name):
    graph, kinds = classifier()
    return step_of(tape_of(graph, kinds, [0, 1, 2]), FORMS[name])


def test_text(golden):
    golden("rerolled-step-everything.txt", text(classified("everything").lines()))


def test_the_back_ends_know_every_statement():
    """NumPy needs fewer: it runs no rows together, defers nothing and skips nothing."""
    in_c = {*c_section._PLAIN, *c_section.Section._WRITERS}
    in_machine_code = {*section.Section._WRITERS, *section.Lists.WRITERS, steps.Divided}  # which has one thread
    assert in_c == in_machine_code == {*steps.STATEMENTS}


# --- the checker -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [steps.Copy, steps.TakeRows, steps.ListRows, steps.CheckFactors])
def test_a_place_beyond_an_area_is_refused(kind):
    def moved(statement):
        name = "at" if hasattr(statement, "at") else "to"
        beyond = {name: steps.Place(step.workspace - 1)} if isinstance(statement, kind) else {}
        return (replace(statement, **beyond),)

    step = check_step(classified("everything"))
    with pytest.raises(BrokenStep, match="reaches"):
        check_step(step.rewritten(moved))


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
