"""Random graphs with extreme constants: every compiled engine is compared with `tuple`, bit for bit.

A batch's graphs are compiled as one graph, their sum. A sum passes each root the gradient that the root has alone, so
the graphs can share a translation unit; each root is an output. Graphs whose training stays finite are trained together
as well. The others are trained alone up to the first step that is not finite, on engines that compile fast.
"""

from __future__ import annotations

import contextlib
import math
import random
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import engines
from engines.api import NonFiniteLoss, Unavailable
from faults.kinds import Batch
from faults.tally import Tally
from tests.engines.compiled.compiling import (
    compiled,
    is_slow,
    reference,
    set_leaves,
    train_by_hand,
    training_difference,
)
from tests.engines.graphs import BINARY, UNARY, Complex, Graph, bits, call, side_by_side

NAME = "graphs"
FAULTS = "random graphs with subnormal, huge and special constants, through every strict compiled engine"
UNIT = "a graph"
TRIES = 200
BATCHES = 50
SECONDS = 900.0

MOST_INSTRUCTIONS = 30
ROWS = 2
STEPS, BATCH, RATES = 7, 3, (0.05, 0.02)
ALONE = 20
"""Maximum number of graphs that are trained alone."""

EXTREME = (
    *(0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-320, 2.2250738585072014e-308, 1e-300, 1e-160, -1e-160),
    *(1e160, -1e160, 1e300, 1.7976931348623157e308, -1.7976931348623157e308, 709.78, 709.79, -745.2, 1 - 2**-53),
    *(2.0**53, 2.0**53 + 2, 0.1, math.pi, -3.0, 1e-17),
)
SPECIAL = (math.inf, -math.inf, math.nan)
"""Possible values of an input or a parameter; a constant must be finite."""
EXPONENTS = (-2, -1, 0, 1, 2, 3, 5, 0.5, -0.5, 1.5, 1e-300, 1e300, -1e300, 1023, -1074, 0.1, 1 / 3, -0.0)


def lacks() -> str:
    """Why it can't run here; empty if it can."""
    return ""


def run(batch: Batch, tally: Tally) -> None:
    """Compare all graphs together, then some of them alone."""
    cases = [_case(batch.rng(number), number) for number in range(TRIES)]
    tally.tries += len(cases)
    trained = [case for case in cases if case.trains]
    alone = [case for case in cases if not case.trains][:ALONE]
    for engine in _engines():
        _compare(engine, cases, tally)
        if trained:
            _compare_training(engine, trained, tally)
        for case in () if is_slow(engine.name) or "extension" in engine.name else alone:
            _compare_alone(engine, case, tally)


def _engines() -> Iterator[Any]:
    """Strict engines that compile any graph and run here."""
    for name in engines.names():
        engine = engines.load(name)
        if engine.strict and hasattr(engine, "compile"):
            with contextlib.suppress(Unavailable):
                engine.check()
                yield engine


# --- graphs ----------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A graph, the kinds of its leaves, rows of numbers for them, and the reference's result for each row."""

    number: int
    graph: Any
    kinds: list[str]
    rows: list[list[float]]
    outcomes: list[Any]
    """One per row. Rows that the reference cannot compute are left out."""
    trains: bool
    """Whether STEPS steps over its rows stay finite."""


def _case(rng: random.Random, number: int) -> Case:
    """Draw until the reference can compute at least one of the rows, which holds for about every second graph."""
    while not (case := _draw(rng, number)).outcomes:
        pass
    return case


def _draw(rng: random.Random, number: int) -> Case:
    graph = _graph(rng)
    kinds = [rng.choice(("input", "parameter", "parameter", "constant")) for _ in graph.numbers]
    kinds[0] = "input"
    kinds = [
        "input" if kind == "constant" and not math.isfinite(x) else kind
        for kind, x in zip(kinds, graph.numbers, strict=True)
    ]
    drawn = [list(graph.numbers)]
    for _ in range(ROWS - 1):
        drawn.append([x if kind == "constant" else _number(rng) for kind, x in zip(kinds, graph.numbers, strict=True)])
    both = [(row, outcome) for row in drawn if (outcome := reference(graph, row))]
    rows, outcomes = [row for row, _ in both], [outcome for _, outcome in both]
    if rows:
        graph = graph._replace(numbers=tuple(rows[0]))
    trains = (
        bool(rows) and train_by_hand(graph, kinds, rows[0], _inputs(kinds, rows), RATES, BATCH, STEPS).failed is None
    )
    return Case(number, graph, kinds, rows, outcomes, trains)


def _inputs(kinds: Sequence[str], rows: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[x for x, kind in zip(row, kinds, strict=True) if kind == "input"] for row in rows]


def _number(rng: random.Random, special: bool = True) -> float:
    pick = rng.random()
    if pick < 0.4:
        return rng.uniform(-4.0, 4.0)
    if pick < 0.5:
        return math.ldexp(rng.uniform(-1.0, 1.0), rng.randrange(-1074, 1024))
    return rng.choice(EXTREME + SPECIAL if special and pick > 0.9 else EXTREME)


def _graph(rng: random.Random) -> Any:
    """Random instructions over leaves. Operands count back from the newest Value, which makes deep chains."""
    numbers = [_number(rng) for _ in range(rng.randrange(1, 7))]
    program = [
        (
            rng.choice(UNARY + BINARY + ("pow", "const")),
            rng.randrange(6),
            rng.randrange(6),
            _constant(rng),
            rng.randrange(4),
        )
        for _ in range(rng.randrange(1, MOST_INSTRUCTIONS))
    ]

    def build(Value: Any, leaves: Sequence[Any]) -> list[Any]:  # noqa: N803  (a class)
        values = list(leaves)
        for op, i, j, constant, side in program:
            made = _apply(op, values[-1 - i % len(values)], values[-1 - j % len(values)], constant, side)
            if isinstance(made.data, complex):
                raise Complex
            values.append(made)
        return values

    return Graph(f"over {program}", tuple(numbers), build)


def _constant(rng: random.Random) -> float:
    return _number(rng, special=False) if rng.random() < 0.7 else rng.choice(EXPONENTS)


def _apply(op: str, a: Any, b: Any, constant: float, side: int) -> Any:
    if op == "const":
        return (a * constant, constant * a, a + constant, constant - a)[side]
    if op == "pow":
        return a**constant
    return call(op, a, b)


# --- comparison ------------------------------------------------------------------------------------------------------


class _Together(NamedTuple):
    """Several cases as one graph. A case with fewer rows repeats its first ones."""

    graph: Any
    kinds: list[str]
    rows: list[list[float]]
    roots: list[int]
    """Index of each case's root among the graph's values."""
    slices: list[slice]
    """Each case's leaves."""


def _together(cases: Sequence[Case]) -> _Together:
    graph = side_by_side([case.graph for case in cases])
    rows = [[x for case in cases for x in case.rows[n % len(case.rows)]] for n in range(ROWS)]
    roots, slices, values, leaves = [], [], 0, 0
    for case in cases:
        values += len(case.outcomes[0].data)
        roots.append(values - 1)
        slices.append(slice(leaves, leaves + len(case.kinds)))
        leaves += len(case.kinds)
    return _Together(graph, [kind for case in cases for kind in case.kinds], rows, roots, slices)


def _compare(engine: Any, cases: Sequence[Case], tally: Tally) -> None:
    """Run both passes over each row, with all cases in one unit. Compare each root and its parameters' gradients."""
    one = _together(cases)
    found = compiled(engine, one.graph, one.kinds, one.rows[0], one.roots)
    for n, row in enumerate(one.rows):
        set_leaves(found, row)
        found.program.zero_grad()
        found.program.forward()
        found.program.backward()
        gradients = iter(found.program.gradients)
        for case, output in zip(cases, list(found.program.outputs), strict=True):
            outcome = case.outcomes[n % len(case.outcomes)]
            wanted = [g for g, kind in zip(outcome.gradients, case.kinds, strict=True) if kind == "parameter"]
            have = [next(gradients) for _ in wanted]
            if bits([output, *have]) != bits([outcome.loss, *wanted]):
                tally.count(
                    "mismatches",
                    f"{engine.name}, graph {case.number}, row {n}: {[output, *have]}, not {[outcome.loss, *wanted]}",
                )


def _compare_training(engine: Any, cases: Sequence[Case], tally: Tally) -> None:
    """Train all cases in one unit over the rows, with updates and a partial batch."""
    one = _together(cases)
    rows = _inputs(one.kinds, one.rows)
    expected = train_by_hand(one.graph, one.kinds, one.rows[0], rows, RATES, BATCH, STEPS)
    if expected.failed is not None and not expected.losses:
        return
    found = compiled(engine, one.graph, one.kinds, one.rows[0])
    try:
        told = training_difference(found, one.rows[0], rows, expected, RATES, BATCH)
    except NonFiniteLoss as error:
        told = str(error)
    if told:
        tally.count("mismatches", f"{engine.name}, {len(cases)} graphs trained together: {told[:500]}")


def _compare_alone(engine: Any, case: Case, tally: Tally) -> None:
    """Train up to the step at which the reference stops. If that step's loss is not finite, the engine must raise."""
    rows = _inputs(case.kinds, case.rows)
    expected = train_by_hand(case.graph, case.kinds, case.rows[0], rows, RATES, BATCH, STEPS)
    found = compiled(engine, case.graph, case.kinds, case.rows[0])
    try:
        told = training_difference(found, case.rows[0], rows, expected, RATES, BATCH)
        if told:
            tally.count("mismatches", f"{engine.name}, graph {case.number} alone: {told[:500]}")
        set_leaves(found, case.rows[0])
        found.program.reset()
        columns = array("d", [x for row in rows for x in row])
        found.program.train(columns, rate=lambda update: RATES[update % 2], batch=BATCH, steps=STEPS)
        if isinstance(expected.failed, float):
            tally.count("mismatches", f"{engine.name}, graph {case.number} went past a loss of {expected.failed}")
    except NonFiniteLoss as error:
        if error.step < len(expected.losses):
            tally.count("mismatches", f"{engine.name}, graph {case.number} ended at step {error.step}: {error.value}")
