"""The examples in the stages' docstrings, and golden C of a small graph. docs/loops.md shows each stage of another."""

from __future__ import annotations

import doctest
import random

import numpy as np
import pytest

from tests.engines.graphs import Graph
from tests.engines.rerolled.rolling import form, step_of, tape_of, tape_of_workload
from zoomgrad.engines.kernel import c_text
from zoomgrad.engines.rerolled import recover
from zoomgrad.engines.rerolled.emit.c import c_source
from zoomgrad.engines.rerolled.recover import chains, gradients, groups, layout, nest
from zoomgrad.engines.rerolled.recover import fuse as fuse_module
from zoomgrad.engines.rerolled.recover.chains import chain
from zoomgrad.engines.rerolled.recover.fuse import fuse
from zoomgrad.engines.rerolled.recover.gradients import pull
from zoomgrad.engines.rerolled.recover.groups import group
from zoomgrad.engines.rerolled.recover.layout import lay_out
from zoomgrad.engines.rerolled.reroll import reroll
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
    monkeypatch.setattr(c_text, "read", '#include "{}"'.format)
    chosen = form(rows=0, width=4)
    source = c_source(step_of(tape_of_workload(workloads.load(NAME)), chosen), chosen)
    golden("rerolled-mlp-2x2x1.c", source.units[0].partition("static void values(")[0])
