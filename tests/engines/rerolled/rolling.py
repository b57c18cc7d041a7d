"""Shared by the tests of recovered loops: tapes to recover loops from, and engines that run them."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")

from tests.engines.compiled.compiling import COMPILED, is_slow
from zoomgrad import engines
from zoomgrad.engines.rerolled.c_engines import RerolledC
from zoomgrad.engines.rerolled.engine import reroll
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange import rearrange
from zoomgrad.engines.rerolled.step.plain import plain

REROLLED = [name for name in COMPILED if name.startswith("rerolled")]
QUICK = [name for name in REROLLED if not is_slow(name)]
SLOW = [name for name in REROLLED if is_slow(name)]


def text(lines):
    return "\n".join(lines) + "\n"


def tape_of(graph, kinds, outputs=()):
    """Return the tape of a graph. outputs: indices into the Values of `Graph.build`."""
    engine = engines.load("rerolled-numpy")
    leaves = [engine.Value(x) for x in graph.numbers]
    values = graph.build(engine.Value, leaves)
    chosen = {kind: [v for v, k in zip(leaves, kinds) if k == kind] for kind in ("input", "parameter")}
    return engine.tape(
        values[-1],
        inputs=chosen["input"],
        parameters=chosen["parameter"],
        outputs=[values[index % len(values)] for index in outputs],
    )


def tape_of_workload(workload):
    """Return the tape of one step of the workload."""
    engine = engines.load("rerolled-numpy")
    model = workload.model(engine.nn)
    inputs = [engine.Value(x) for x in workload.row(0)]
    outputs = workload.outputs(model, inputs)
    loss = workload.loss(model, inputs, outputs)
    return engine.tape(loss, inputs=inputs, parameters=model.parameters(), outputs=outputs)


class Exactly(RerolledC):
    """C of exactly the given form on every machine. Compilers split vectors that are too wide for it."""

    @property
    def fitted(self):
        return self.form


def form(rows=1, *, sparse=False, **sizes):
    """Return a Form. rows: how many rows it takes together; 1 defers updates only, 0 does neither."""
    names = ["in place", *["zeros skipped"] * sparse, *["deferred"] * (rows > 0), *["rows together"] * (rows > 1)]
    return Form(rearrangements=tuple(names), rows=max(rows, 1), **sizes)


def step_of(tape, form):
    """Return the step of a tape, rearranged for the form."""
    return rearrange(plain(reroll(tape)), form)


def of_form(compiler, form, *flags):
    """Return an engine for C of that form, at -O0 unless flags are given."""
    flags = flags or ("-O0",) * (compiler != "tcc")
    return Exactly(f"{compiler} {form}", compiler, flags, form, idea="", builds_on="", typical_row_seconds=0.0)
