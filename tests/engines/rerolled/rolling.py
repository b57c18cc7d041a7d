"""Shared by the tests of recovered loops: tapes to recover loops from, and engines that run them."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("numpy")

from tests.engines.compiled.compiling import COMPILED, engine_of, is_slow, tape_of, tape_of_workload  # noqa: F401  (for tests)
from zoomgrad.engines.machine.target import AVX2, AVX512, features, vector_registers
from zoomgrad.engines.rerolled.fitted import form_of
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange import rearrange, together, weight_reuse, whole_batches
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step.plain import plain

REROLLED = [name for name in COMPILED if name.startswith("rerolled")]
SLOW = [name for name in REROLLED if is_slow(name)]


def text(lines):
    return "\n".join(lines) + "\n"


def form(rows=1, *, sparse=False, **sizes):
    """Return a Form. rows: how many rows it takes together; 1 defers updates only, 0 does neither."""
    together = ["rows together", "whole batches", "from panels", "transposed", "in strips"] * (rows > 1)
    names = ["in place", *["zeros skipped"] * sparse, *["deferred"] * (rows > 0), *together]
    return Form(rearrangements=tuple(names), rows=max(rows, 1), many_terms=1, **sizes)


def share_all_weights(patch):
    """Lower the thresholds, so that the rows of small networks also share weights, sinks and updates."""
    for module in (together, weight_reuse, whole_batches):
        patch.setattr(module, "MANY", 1)


@pytest.fixture(autouse=True)
def nothing_is_too_small(monkeypatch):
    share_all_weights(monkeypatch)


def step_of(tape, form):
    """Return the step of a tape, rearranged for the form."""
    return rearrange(plain(reroll(tape)), form)


def of_form(compiler, form, *flags):
    """Return an engine for C of exactly that form, at -O0 unless flags are given."""
    return engine_of(compiler, form, *(flags or ("-O0",) * (compiler != "tcc")), code="loops")


WIDTHS = [
    pytest.param(width, marks=pytest.mark.skipif(not features() >= needed, reason=f"no vectors of {width}"))
    for width, needed in ((4, AVX2), (8, AVX512))
]


def machine(width, **options):
    """Return an engine of machine code for vectors of that width."""
    chosen = engine_of("", None, code="loops", target="machine", **options).options
    form = replace(form_of(chosen, width, vector_registers(width)), many_terms=1, embeds=width == 8 and not options)
    return engine_of("", form, code="loops", target="machine", **options)
