"""Shared by the tests of compiled engines: the lists of engines, and the comparison with the reference."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.engines.graphs import REFERENCE, bits
from tests.examples import examples as share_of
from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled import engine as compiled_engine
from zoomgrad.engines.compiled.trace import Graph as Trace
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.options import Options

COMPILED = [
    name
    for name in engines.names()
    # Each process that tests `rpython` translates for half a minute, so one file has its tests.
    if engines.load(name).strict and engines.load(name).compiles and name != "rpython"
]


def kind(name):
    """What an engine's kernel depends on, apart from the compiler and its flags."""
    options = engines.load(name).options
    return options.code, options.target, bool(options.compiler)


ONE_OF_EACH_KIND = list({kind(name): name for name in reversed(COMPILED)}.values())
"""The first engine of each kind. Engines of one kind share a kernel, so one of them is enough for many tests."""


def usable(engine):
    """Return the engine (given itself or by name), or skip the test with the reason why it can't run here."""
    if isinstance(engine, str):
        engine = engines.load(engine)
    try:
        engine.check()
    except Unavailable as why:
        pytest.skip(f"{engine.name}: {why.reason}")
    return engine


def doubles(*numbers):
    return array("d", numbers)


def is_slow(name):
    """Whether compiling is so slow that tests must limit it, which is true of gcc and Clang."""
    return engines.load(name).options.compiler not in ("", "tcc")


def by_kernel(names):
    """Return pytest parameters that mark engines with interpreter-independent C as host-only.

    Engines that run in Python or NumPy are tested on every interpreter. So are extension modules, because they are
    compiled against one interpreter's Python.h.
    """

    def marks(engine):
        is_the_hosts = engine.options.compiler and engine.options.target != "module"
        return [pytest.mark.host] if is_the_hosts else []

    return [pytest.param(name, marks=marks(engines.load(name))) for name in names]


def by_text(names):
    """Return the same parameters. Of engines that compile the same C with the same compiler, a push tests the last."""
    last, found = {}, by_kernel(names)
    for param in found:
        last[replace(engines.load(*param.values).options, level=None)] = param
    later = [pytest.mark.exhaustive]
    return [p if p in last.values() else pytest.param(*p.values, marks=[*p.marks, *later]) for p in found]


def examples(name):
    """Return how many random graphs the compiler has time for. An extension module parses Python.h for each."""
    return 3 if is_slow(name) else share_of(15 if "extension" in name else 80)


def engine_of(compiler, form, *flags, **options):
    """Return an engine for C of that form. options: other fields of Options."""
    chosen = Options(compiler=compiler, form=form, flags=flags, **options)
    return compiled_engine.Compiled(f"{compiler} {' '.join(flags)} {form}", "", "", options=chosen)


def tape_of(graph, kinds, outputs=(), Value=None):
    """Return the tape of a graph. outputs: indices into the Values of `Graph.build`."""
    Value = Value or engines.load("bytecode").Value
    leaves = [Value(x) for x in graph.numbers]
    values = graph.build(Value, leaves)
    chosen = [[v for v, k in zip(leaves, kinds) if k == wanted] for wanted in ("input", "parameter")]
    return Trace(values[-1], *chosen, [values[index % len(values)] for index in outputs]).tape()


def tape_of_workload(workload, row=None):
    """Return the tape of one step of the workload, by default on its first row."""
    return trace(workload, row or workload.row(0)).tape()


# --- the reference -----------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """Results for a graph over some numbers."""

    loss: float
    data: list[float]
    """Data of all Values that `Graph.build` returns."""
    gradients: list[float]
    """Gradients of the leaves."""


def reference(graph, numbers, engine=REFERENCE):
    """Return the reference's Outcome, or None if it raises: equality is guaranteed only up to a domain error.

    engine: another interpreted engine in its place.
    """
    Value = engines.load(engine).Value
    leaves = [Value(x) for x in numbers]
    try:
        values = graph.build(Value, leaves)
        values[-1].backward()
    except (ArithmeticError, ValueError):
        return None
    return Outcome(values[-1].data, [v.data for v in values], [v.grad for v in leaves])


class Trained(NamedTuple):
    """Results of training by hand with the reference, up to the step that failed."""

    losses: list[float]
    parameters: list[float]
    gradients: list[float]
    """Gradients of the partial batch."""
    failed: Any
    """The loss that is not finite, or the exception; None if all steps succeeded."""


def train_by_hand(graph, kinds, numbers, rows, rates, batch, steps):
    """Train as one would with micrograd: rebuild the graph for each row over the same parameters.

    rates: one per update.
    """
    Value = engines.load(REFERENCE).Value
    parameters = [Value(x) for x, kind in zip(numbers, kinds) if kind == "parameter"]
    losses, gradients, failed = [], [0.0] * len(parameters), None
    for step in range(steps):
        given = {"parameter": iter(parameters), "input": map(Value, rows[step % len(rows)])}
        leaves = [next(given[kind]) if kind in given else Value(x) for kind, x in zip(kinds, numbers)]
        try:
            loss = graph.build(Value, leaves)[-1]
            if not math.isfinite(loss.data):
                failed = loss.data
                break
            loss.backward()
        except (ArithmeticError, ValueError) as error:
            failed = error
            break
        losses.append(loss.data)
        if len(losses) % batch == 0:
            rate = rates[len(losses) // batch - 1]
            for p in parameters:
                p.data -= rate * p.grad / batch
                p.grad = 0.0
        gradients = [p.grad for p in parameters]
    return Trained(losses, [p.data for p in parameters], gradients, failed)


# --- a compiled graph --------------------------------------------------------------------------------------------


class Compiled(NamedTuple):
    """A Program, with the kind of each leaf and the indices of its outputs."""

    program: Any
    kinds: list[str]
    outputs: list[int]

    def chosen(self, kind, numbers):
        """Return the numbers of the leaves of that kind."""
        return [x for x, k in zip(numbers, self.kinds) if k == kind]


def compiled(engine, graph, kinds, numbers, outputs=()):
    """Trace the graph over those numbers and compile it. outputs: indices into the Values of `Graph.build`."""
    leaves = [engine.Value(x) for x in numbers]
    values = graph.build(engine.Value, leaves)
    chosen = {kind: [v for v, k in zip(leaves, kinds) if k == kind] for kind in ("input", "parameter")}
    outputs = [index % len(values) for index in outputs]
    program = engine.compile(
        values[-1], inputs=chosen["input"], parameters=chosen["parameter"], outputs=[values[i] for i in outputs]
    )
    return Compiled(program, kinds, outputs)


def set_leaves(found, numbers):
    """Set the program's inputs and parameters."""
    inputs = found.chosen("input", numbers)
    if inputs:
        found.program.set_input(array("d", inputs))
    found.program.parameters[:] = array("d", found.chosen("parameter", numbers))


def differing(pairs):
    """Describe which numbers differ in bits; return an empty text if none. pairs: name -> have, want."""
    return "\n".join(
        f"{name}: {list(have)}, not {list(want)}" for name, (have, want) in pairs.items() if bits(have) != bits(want)
    )


def difference(found, numbers, expected):
    """Describe where the program's results differ from the expected Outcome; return an empty text if nowhere."""
    program = found.program
    set_leaves(found, numbers)
    program.zero_grad()
    loss = program.forward()
    program.backward()
    return differing(
        {
            "loss": ([loss], [expected.loss]),
            "outputs": (program.outputs, [expected.data[i] for i in found.outputs]),
            "gradients": (program.gradients, found.chosen("parameter", expected.gradients)),
        }
    )


def training_difference(found, numbers, rows, expected, rates, batch, calls=()):
    """Describe where the results of training differ, over as many steps as the reference took.

    calls: numbers of steps of several calls; by default, one call takes all.
    """
    program, steps = found.program, len(expected.losses)
    set_leaves(found, numbers)
    program.zero_grad()
    columns, losses = array("d", [x for row in rows for x in row]), array("d")
    for call in calls or [steps]:
        updates = len(losses) // batch
        losses += program.train(
            columns,
            rate=lambda update, updates=updates: rates[updates + update],
            batch=batch,
            steps=min(call, steps - len(losses)),
            first_row=len(losses) % len(rows),
        )
    return differing(
        {
            "losses": (losses, expected.losses),
            "parameters": (program.parameters, expected.parameters),
            "gradients": (program.gradients, expected.gradients),
        }
    )


CLASSIFIER_ROWS = [[0.1 * i, -0.3, 0.2 * i, *(float(i % 3 == c) for c in range(3))] for i in range(4)]
"""For `classifier()`: features, then a one-hot label."""


def trains_alike(engine, graph, kinds, rows, batch, steps):
    """Assert that the losses, the parameters and the partial batch's gradients equal the reference's after training."""
    rates = [0.1 / (update + 1) for update in range(steps)]
    expected = train_by_hand(graph, kinds, graph.numbers, rows, rates, batch, steps)
    found = compiled(engine, graph, kinds, graph.numbers)
    assert training_difference(found, graph.numbers, rows, expected, rates, batch) == ""
    return found, expected
