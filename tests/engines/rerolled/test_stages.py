"""Stages of recovered loops: the examples in their docstrings, golden text of a step and its C, and its checker.

docs/loops.md shows each stage of another graph, and `test_tempting` compares the bits.
"""

from __future__ import annotations

import doctest
import itertools
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.engines.graphs import Graph, classifier
from tests.engines.rerolled.rolling import form, nothing_is_too_small, step_of, tape_of, tape_of_workload, text  # noqa: F401  (a fixture)
from zoomgrad.engines.kernel import c_tree
from zoomgrad.engines.machine import section
from zoomgrad.engines.rerolled import recover, step
from zoomgrad.engines.rerolled.emit import c_section
from zoomgrad.engines.rerolled.emit.c import c_source
from zoomgrad.engines.rerolled.recover import chains, gradients, groups, layout, nest
from zoomgrad.engines.rerolled.recover import fuse as fuse_module
from zoomgrad.engines.rerolled.recover.chains import chain
from zoomgrad.engines.rerolled.recover.fuse import fuse
from zoomgrad.engines.rerolled.recover.gradients import pull
from zoomgrad.engines.rerolled.recover.groups import group
from zoomgrad.engines.rerolled.recover.layout import lay_out
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.check import BrokenStep, check_step
from zoomgrad.engines.rerolled.step.shared import share_runs
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

NAME = "mlp-2x2x1"


def test_rows_of_weights_do_not_share_the_sets_of_a_cache():
    """A layer of 128 units has its weights 136 places apart, from term to term, and one of 120 units 120."""
    apart = []
    for units in (128, 120):
        loops = reroll(tape_of_workload(workloads.load(f"mlp-2x{units}x1"))).loops
        apart += [segment.operands[0].terms for segment in loops[0].segments if segment.counts]
    assert apart == [(136,), (120,)]


def two_units():
    """Return the tape of the package's docstring."""

    def build(Value, leaves):
        x, p = leaves[:2], leaves[2:]
        return [(p[0] + p[1] * x[0] + p[2] * x[1]).relu() * (p[3] + p[4] * x[0] + p[5] * x[1]).relu()]

    rng = random.Random(1337)
    graph = Graph("two units", tuple(rng.gauss(0.0, 0.5) for _ in range(8)), build)
    return tape_of(graph, ["input"] * 2 + ["parameter"] * 6)


STAGES = [recover, gradients, chains, fuse_module, groups, nest, layout]


@pytest.mark.parametrize("module", STAGES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_docstring_examples_are_correct(module):
    names = {
        "tape": two_units(),
        "show": lambda stage: print(*stage.lines(), sep="\n"),
        "np": np,
        **{stage.__name__: stage for stage in (pull, chain, fuse, group, lay_out)},
    }
    result = doctest.testmod(module, extraglobs=names)
    assert result.attempted
    assert not result.failed


def test_c(golden, monkeypatch):
    """The loops in vectors of 4. Differential tests cover the functions after them, which call the loops."""
    monkeypatch.setattr(c_tree, "read", '#include "{}"'.format)
    chosen = form(rows=0, width=4)
    source = c_source(step_of(tape_of_workload(workloads.load(NAME)), chosen), chosen)
    golden("rerolled-mlp-2x2x1.c", source.units[0].partition('#include "kernel/kernel.h"')[0])


FORMS = {
    "plain": replace(form(), rearrangements=()),
    "in place": form(rows=0),
    "everything": form(rows=2, sparse=True),
    "updates wait": form(rows=2),
}


def classified(name):
    graph, kinds = classifier()
    return step_of(tape_of(graph, kinds, [0, 1, 2]), FORMS[name])


@pytest.mark.parametrize("name", ["everything", "updates wait"])
def test_text(golden, name):
    golden(f"rerolled-step-{name.replace(' ', '-')}.txt", text(classified(name).lines()))


def test_back_ends_write_no_run_twice():
    step = classified("updates wait")
    steps = (share_runs(step), step.pruned())
    shared, whole = (Counter(str(run) for runs in each.routines.values() for run in runs) for each in steps)
    assert shared == Counter(set(whole)) != whole


def test_the_back_ends_know_every_statement():
    """NumPy needs fewer: it runs no rows together, defers nothing and skips nothing."""
    every = {*steps.Statement.__subclasses__(), *(a for a in vars(steps).values() if isinstance(a, steps.Action))}
    in_machine_code = {*section.Section.WRITERS, steps.Action, steps.Divided}  # which has one thread
    assert {*c_section._ACTIONS, *c_section.Section._WRITERS} == in_machine_code == every


# --- the checker -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [steps.Copy, steps.TakeRows])
def test_a_place_beyond_an_area_is_refused(kind):
    def moved(statement):
        beyond = {"to": steps.Place(step.workspace - 1)} if isinstance(statement, kind) else {}
        return (replace(statement, **beyond),)

    step = check_step(classified("everything"))
    with pytest.raises(BrokenStep, match="reaches"):
        check_step(step.with_programs(together=steps.rewrite(step.programs["together"], moved)))


def test_the_docstring_example_is_correct():
    """The example has two columns: the plain turn, and the one with updates in place."""
    product = Graph("product", (2.0, 3.0), lambda Value, leaves: [leaves[0] * leaves[1]])
    tape = tape_of(product, ["parameter", "input"])
    printed = [text(step_of(tape, FORMS[name]).lines()) for name in ("plain", "in place")]
    turns = [each[each.index("turn:\n") : each.index("evaluate:\n")].splitlines() for each in printed]
    table = [f"    {left:40}{right}".rstrip() for left, right in itertools.zip_longest(*turns, fillvalue="")]
    assert "\n".join(table) in step.__doc__
    assert all(line.strip() in step.__doc__ for line in reroll(tape).lines() if "[0] " in line)
