"""What the tests of compiled engines share: which engines there are, and how they are held against the reference."""

from __future__ import annotations

import math
from array import array
from typing import Any, NamedTuple

import pytest

import engines
from engines.api import Unavailable
from engines.straight.c_engines import StraightC
from engines.straight.extension import ExtensionEngine
from tests.engines.graphs import REFERENCE, bits

COMPILED = [name for name in engines.names() if engines.load(name).strict and hasattr(engines.load(name), "compile")]
ONE_OF_EACH_KIND = list({type(engines.load(name)): name for name in reversed(COMPILED)}.values())
"""The first engine of each class: what holds for one of them holds for the others that share its kernel."""


def usable(engine):
    """The engine of that name, or a skip that tells why it can't run here."""
    if isinstance(engine, str):
        engine = engines.load(engine)
    try:
        engine.check()
    except Unavailable as why:
        pytest.skip(f"{engine.name}: {why.reason}")
    return engine


def is_slow(name):
    """Whether a compilation takes long enough for tests to be sparing: gcc's and Clang's do."""
    return getattr(engines.load(name), "compiler", "tcc") != "tcc"


def by_kernel(names):
    """Parameters: what Python or NumPy runs is tested on every interpreter, what a compiler made on the host.

    An extension module is made for one interpreter, from its Python.h.
    """

    def marks(engine):
        is_the_hosts = hasattr(engine, "compiler") and not isinstance(engine, ExtensionEngine)
        return [pytest.mark.host] if is_the_hosts else []

    return [pytest.param(name, marks=marks(engines.load(name))) for name in names]


def examples(name):
    """How many random graphs its compiler has time for; an extension module's includes Python.h each time."""
    return 3 if is_slow(name) else 15 if "extension" in name else 80


def engine_of(compiler, form, *flags):
    """An engine for C of that form."""
    name = f"{compiler} {' '.join(flags)} {form}"
    return StraightC(name, compiler, flags, form, idea="", builds_on="", typical_row_seconds=0.0)


# --- the reference -----------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What the reference makes of a graph over some numbers."""

    loss: float
    data: list[float]
    """Of all Values that the graph names."""
    gradients: list[float]
    """Of its leaves."""


def reference(graph, numbers):
    """The Outcome; None where the reference raises, which ends all promises."""
    Value = engines.load(REFERENCE).Value
    leaves = [Value(x) for x in numbers]
    try:
        values = graph.build(Value, leaves)
        values[-1].backward()
    except (ArithmeticError, ValueError):
        return None
    return Outcome(values[-1].data, [v.data for v in values], [v.grad for v in leaves])


class Trained(NamedTuple):
    """What the reference's training gave, by hand, before it ended."""

    losses: list[float]
    parameters: list[float]
    gradients: list[float]
    """Of the partial batch."""
    failed: Any
    """The loss that is no finite number, or the exception; None where all steps were taken."""


def train_by_hand(graph, kinds, numbers, rows, rates, batch, steps):
    """As anybody would with micrograd: the graph built anew for each row, over parameters that stay.

    rates: one for each update.
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
    """A Program, and what stands where in it."""

    program: Any
    kinds: list[str]
    outputs: list[int]

    def chosen(self, kind, numbers):
        """The numbers of the leaves of that kind."""
        return [x for x, k in zip(numbers, self.kinds) if k == kind]


def compiled(engine, graph, kinds, numbers, outputs=()):
    """The graph compiled, traced over those numbers. outputs: indices among the Values that it names."""
    leaves = [engine.Value(x) for x in numbers]
    values = graph.build(engine.Value, leaves)
    chosen = {kind: [v for v, k in zip(leaves, kinds) if k == kind] for kind in ("input", "parameter")}
    outputs = [index % len(values) for index in outputs]
    program = engine.compile(
        values[-1], inputs=chosen["input"], parameters=chosen["parameter"], outputs=[values[i] for i in outputs]
    )
    return Compiled(program, kinds, outputs)


def set_leaves(found, numbers):
    """Hand the program other inputs and parameters."""
    inputs = found.chosen("input", numbers)
    if inputs:
        found.program.set_input(array("d", inputs))
    found.program.parameters[:] = array("d", found.chosen("parameter", numbers))


def difference(found, numbers, expected):
    """What the program computes otherwise than the Outcome that is expected; empty where nothing."""
    program = found.program
    set_leaves(found, numbers)
    program.zero_grad()
    loss = program.forward()
    program.backward()
    pairs = {
        "loss": ([loss], [expected.loss]),
        "outputs": (program.outputs, [expected.data[i] for i in found.outputs]),
        "gradients": (program.gradients, found.chosen("parameter", expected.gradients)),
    }
    return "\n".join(
        f"{name}: {list(have)}, not {list(want)}" for name, (have, want) in pairs.items() if bits(have) != bits(want)
    )


def training_difference(found, numbers, rows, expected, rates, batch):
    """The same after training, for as long as the reference's went."""
    program = found.program
    set_leaves(found, numbers)
    program.reset()
    columns = array("d", [x for row in rows for x in row])
    losses = program.train(columns, rate=rates.__getitem__, batch=batch, steps=len(expected.losses))
    pairs = {
        "losses": (losses, expected.losses),
        "parameters": (program.parameters, expected.parameters),
        "gradients": (program.gradients, expected.gradients),
    }
    return "\n".join(
        f"{name}: {list(have)}, not {list(want)}" for name, (have, want) in pairs.items() if bits(have) != bits(want)
    )


CLASSIFIER_ROWS = [[0.1 * i, -0.3, 0.2 * i, *(float(i % 3 == c) for c in range(3))] for i in range(4)]
"""For `classifier()`: features, then a one-hot label."""


def trains_alike(engine, graph, kinds, rows, batch, steps):
    """After some steps and updates: the losses, the parameters, and the gradients of the batch that is not full."""
    rates = [0.1 / (update + 1) for update in range(steps)]
    expected = train_by_hand(graph, kinds, graph.numbers, rows, rates, batch, steps)
    found = compiled(engine, graph, kinds, graph.numbers)
    assert training_difference(found, graph.numbers, rows, expected, rates, batch) == ""
    return found, expected
