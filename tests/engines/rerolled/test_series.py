"""Series: loops that differ in places and counts run in rounds, with the same bits."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from tests.engines.compiled.compiling import usable
from tests.engines.rerolled.rolling import of_form
from tests.engines.rerolled.tempting import case
from tests.engines.rerolled.test_tempting import hunt
from tests.engines.rerolled.test_waves import texts
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.rerolled.emit.c import c_source
from zoomgrad.engines.rerolled.fitted import SCALARS, VECTORS
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange import in_rounds, rearrange
from zoomgrad.engines.rerolled.rearrange.freeze import passes_only
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

ROUNDS = Form(rearrangements=("in rounds",))


def gpt(name, positions):
    """Return the tape of that GPT for a name with one letter less than positions."""
    workload = workloads.load(name)
    (shape,) = [shape for shape in workload.shapes() if len(shape.columns) == 2 * positions]
    return trace(workload, workload.row(shape.rows[0])).tape()


@pytest.fixture
def everywhere(monkeypatch):
    """Let small graphs have series, too."""
    monkeypatch.setattr(in_rounds, "MANY", 1)
    monkeypatch.setattr(in_rounds, "ROUNDS", 2)


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize(("compiler", "form"), [("tcc", SCALARS), ("gcc", replace(VECTORS, units=1))], ids=str)
def test_rounds_keep_the_reference_bits(compiler, form):
    usable(f"rerolled-{compiler}")
    hunt(of_form(compiler, form), texts, 20)


def test_more_positions_take_little_more_code():
    """The C for 16 positions is at most 1.3 times as long as that for 4."""

    def size(positions):
        step = plain(reroll(gpt("microgpt", positions)))
        return c_source(passes_only(rearrange(step, ROUNDS)), replace(ROUNDS, width=8)).size

    assert size(16) < 1.3 * size(4)


def test_a_chain_whose_steps_branch_keeps_the_reference_bits():
    """Two lanes continue the same one, so their chain gets shorter and wider: it has no places of its own."""

    def build(Value, leaves):
        a, b, c = leaves[:8], leaves[8:16], leaves[16:]
        first = [x * y for x, y in zip(a, b)]
        second = [first[n // 2] * c[n] for n in range(6)]
        third = [second[n // 2] * c[n + 1] for n in range(4)]
        fourth = [x * c[7] for x in third[:3]]
        return [*first, *second, *third, *fourth, sum(x.tanh() for x in [*fourth, *third, *second, *first])]

    case_ = case(random.Random(1), "branches", ("input",) * 8 + ("parameter",) * 16, build, (0,))
    for name in ("rerolled-numpy", "rerolled-tcc"):
        hunt(usable(name), st.just(case_), 1)
