"""Variants of a kernel: each runs for some batches, and is built when a batch first needs it."""

from __future__ import annotations

from array import array

import pytest

from tests.engines.compiled.compiling import compiled, usable
from tests.engines.graphs import bits, classifier
from tests.engines.rerolled.rolling import form, nothing_is_too_small, of_form, step_of, tape_of  # noqa: F401  (a fixture)
from zoomgrad.engines.kernel import building
from zoomgrad.engines.rerolled.step.language import Fact, If, Perform, walk
from zoomgrad.engines.rerolled.step.variants import variants_of

pytestmark = pytest.mark.host

FORMS = {"deferred": form(), "together": form(rows=2), "everything": form(rows=2, sparse=True)}


def step(name):
    graph, kinds = classifier()
    return step_of(tape_of(graph, kinds, [0, 1, 2]), FORMS[name])


def program_of(name):
    """Compile the classifier, and return the program and rows to train on."""
    graph, kinds = classifier()
    program = compiled(usable(of_form("gcc", FORMS[name])), graph, kinds, graph.numbers).program
    return program, array("d", [0.5 + 0.125 * (n % 7) for n in range(9 * len(program.inputs))])


def asked(step):
    return {s.condition for p in step.programs.values() for s in walk(p) if isinstance(s, If)}


@pytest.mark.parametrize("name", ["together", "everything"])
def test_each_variant_holds_only_what_its_batches_run(name):
    whole = step(name)
    (_, first, single), (_, second, together) = variants_of(whole)
    assert (first, second) == (1, 2)
    assert Fact.ALONE in asked(single)
    assert Fact.DUE not in asked(together)
    assert "loop 0 of 2 rows" in together.routines
    assert ("settle" in single.routines) == (name == "together")
    for variant in (single, together):
        run = {s.routine for p in variant.programs.values() for s in walk(p) if isinstance(s, Perform)}
        assert set(variant.routines) == run < set(whole.routines)
        assert variant.areas == whole.areas, "programs keep one workspace for all variants"
        assert variant.programs["forward"] == whole.programs["forward"]


@pytest.mark.parametrize(("name", "batch"), [("together", 3), ("everything", 2)])
def test_a_variant_trains_like_the_other(name, batch, monkeypatch):
    """A stretch may follow one with another batch, so a variant begins where the other one ended."""
    trained = []
    for chosen in (0, 1):
        program, rows = program_of(name)
        if chosen:
            monkeypatch.setattr("zoomgrad.engines.compile.variant_for", lambda batch, variants: variants[-1])
        losses = [
            *program.train(rows, rate=0.1, batch=batch, steps=7),
            *program.train(rows, rate=0.1, batch=1, steps=3),
        ]
        program.set_input(rows[: len(program.inputs)])
        losses.append(program.forward())
        program.backward()
        trained.append((bits(losses), bits(program.parameters), bits(program.gradients)))
    assert trained[0] == trained[1]


def test_a_variant_is_built_when_a_batch_first_needs_it(monkeypatch):
    built = []
    build = building.build
    monkeypatch.setattr(building, "build", lambda *args, **limits: built.append(args) or build(*args, **limits))
    program, rows = program_of("together")
    phases = dict(program.phases)
    assert len(built) == 1
    program.train(rows, rate=0.1, batch=1)
    assert len(built) == 1
    for _ in range(2):
        program.train(rows, rate=0.1, batch=2)
        assert len(built) == 2
    assert program.phases == phases, "phases are those of `compile`"
    program.train(rows, rate=0.1, batch=1)
    assert len(built) == 2
