"""Mutations of single statements in a step: the checker must refuse each one that changes a bit."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace

import pytest

from engines.api import NonFiniteLoss
from engines.kernel.program import Program
from engines.rerolled.emit.numpy_step import NumpyKernel
from engines.rerolled.rearrange import weight_reuse
from engines.rerolled.step import language as steps
from engines.rerolled.step.check import check_step
from engines.rerolled.step.ways import BrokenStep
from tests.engines.graphs import bits, classifier
from tests.engines.rerolled.rolling import form, step_of, tape_of

pytestmark = pytest.mark.host

GRAPH, KINDS = classifier()
START = [x for x, kind in zip(GRAPH.numbers, KINDS) if kind == "parameter"]
FORMS = {
    "plain": replace(form(), rearrangements=()),
    "in place": form(rows=0),
    "deferred": form(),
    "together": form(rows=2),
}
"""Forms that do not skip zeros. NumPy skips none, so it would not notice mistakes in skipping."""


def rows(fails):
    cells = [(5 * at % 13 - 6) / 5 for at in range(6 * 7)]
    cells[31] = math.nan if fails else cells[31]
    return array("d", cells)


def behaviour(step):
    """Return everything that a caller can observe, over two consecutive stretches for each of several batch sizes."""
    seen = []
    program = Program(NumpyKernel(step), inputs=[0.0] * 6, parameters=START, outputs=3, phases={}, sizes={})
    for fails in (False, True):
        for batch in (1, 2, 3, 5):
            program.parameters[:] = array("d", START)
            program.reset()
            for count, first in ((8, 2), (11, 3)):
                try:
                    losses = program.train(
                        rows(fails), rate=lambda n: 0.1 / (n + 1), batch=batch, steps=count, first_row=first
                    )
                    seen.append(bits(losses))
                except NonFiniteLoss as error:
                    seen.append(error.step)
                ends = (program.parameters, program.gradients, program.inputs, program.outputs)
                seen += [bits(numbers) for numbers in ends]
    program.parameters[:] = array("d", START)
    program.reset()
    program.set_input(rows(False)[:6])
    seen.append(program.forward())
    program.backward()
    return [*seen, bits(program.gradients), bits(program.outputs)]


INNER = {steps.If: ("then", "otherwise"), steps.EachRow: ("body",), steps.Guard: ("otherwise",)}


def changed(program):
    """Yield (description, program) with one statement changed, here or in a nested body."""
    for at, statement in enumerate(program):
        before, after = program[:at], program[at + 1 :]
        yield f"no {statement}", (*before, *after)
        yield f"twice {statement}", (*before, statement, statement, *after)
        if after:
            yield f"late {statement}", (*before, after[0], statement, *after[1:])
        for other in others(statement):
            yield f"{statement} -> {other}", (*before, *other, *after)
        for name in INNER.get(type(statement), ()):
            for what, inner in changed(getattr(statement, name)):
                yield what, (*before, replace(statement, **{name: inner}), *after)


def others(statement):
    """Yield plausible mistaken replacements for a statement."""
    if isinstance(statement, steps.If):
        yield statement.then
        yield statement.otherwise
    elif isinstance(statement, steps.Set):
        yield (replace(statement, value=not statement.value),)
    elif isinstance(statement, steps.Copy):
        to, source, size = statement.to, statement.source, statement.size
        yield (replace(statement, source=to, to=source),)
        yield (replace(statement, size=size - 1),)
        yield (replace(statement, source=source._replace(base=source.base + 1)),)
        if source.per_row or to.per_row:
            yield (replace(statement, source=source._replace(per_row=0), to=to._replace(per_row=0)),)


def mutants(step):
    """Yield (description, step) for every mutation of the step."""
    for section, program in step.programs.items():
        for what, mutant in changed(program):
            yield f"{section}: {what}", step.with_programs(**{section: mutant})
        for at in (s for s in steps.walk(program) if isinstance(s, steps.Perform)):
            for name in step.routines:
                other = steps.rewrite(program, lambda s, at=at, name=name: (steps.Perform(name),) if s == at else (s,))
                yield f"{section}: {at} -> {name}", step.with_programs(**{section: other})
    for name, runs in step.routines.items():
        for at, run in enumerate(runs):
            loop = step.loops.loops[run.number]
            backwards = replace(run.loop, segments=run.loop.segments[::-1])
            for other in (
                replace(run, in_place=not run.in_place),
                replace(run, due=run.due and run.due._replace(keeps=not run.due.keeps)),
                replace(run, due=None),
                replace(run, is_before=False),
                replace(run, loop=loop),
                replace(run, loop=backwards),
            ):
                yield f"{name}: {run} -> {other}", step.with_routine(name, (*runs[:at], other, *runs[at + 1 :]))


@pytest.mark.parametrize("name", FORMS)
def test_a_mistake_is_refused_or_changes_no_bit(monkeypatch, name):
    monkeypatch.setattr(weight_reuse, "MANY", 1)
    step = step_of(tape_of(GRAPH, KINDS, [0, 1, 2]), FORMS[name])
    right, refused, escaped = behaviour(step), 0, []
    for what, mutant in mutants(step):
        try:
            check_step(mutant)
        except BrokenStep:
            refused += 1
        else:
            if behaviour(mutant) != right:
                escaped.append(what)
    assert not escaped
    assert refused > 80
