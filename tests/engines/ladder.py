"""Choice of engines for a test. Running every test on every engine would compile the same C a dozen times."""

import contextlib
from array import array
from dataclasses import replace

import pytest

from zoomgrad import datasets, engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.harness import workloads


def of_each_value():
    """Return one engine for each Value class that runs here. Compiled engines share one class, and some have none."""
    first = {}
    for name in engines.names():
        with contextlib.suppress(Unavailable):
            value = engines.load(name).Value
            if value is not None:
                first.setdefault(value, name)
    return list(first.values())


def runnable(*, most_compile_row_seconds=1.0):
    """Return pytest parameters for every engine that compiles fast enough; those that can't run here are skipped."""
    chosen = [n for n in engines.names() if engines.load(n).typical_row_seconds[1] <= most_compile_row_seconds]
    return [pytest.param(name, marks=_lacking(name)) for name in chosen]


FAST_TO_COMPILE = 3e-5
"""Seconds per row. Includes TCC and Python itself, but not optimising compilers."""


def willing(name, workload):
    """Return the engine of that name, or skip the test with the reason why it can't run the workload."""
    engine = engines.load(name)
    refusal = engine.supports(workload)
    if refusal:
        pytest.skip(f"{name}: {refusal}")
    return engine


def available(name):
    """Return the workload of that name, or skip the test with the reason why its data is missing."""
    workload = workloads.load(name)
    try:
        workload.data()
    except datasets.Unavailable as missing:
        pytest.skip(missing.reason)
    return workload


def over_rows(workload, rows):
    """Return the workload of an MLP over these rows of doubles: features, then targets."""
    width, targets = workload.build.shape[0], workload.build.shape[-1]
    features, wanted = ([x for row in rows for x in row[part]] for part in (slice(width), slice(width, None)))
    data = datasets.Dataset("rows", array("d", features), width, 1.0, array("d", wanted), 0, targets, len(rows))
    return replace(workload, reader=lambda: data, train_rows=len(rows))


def promised(name, values):
    """Return an object that equals any result the engine may give: the same bits, or values within its bound."""
    bound = engines.load(name).error_bound
    return array("d", values) if bound is None else pytest.approx(list(values), rel=bound, abs=bound)


def runs_here(name):
    """Whether this machine and interpreter can run the engine."""
    return not _lacking(name)


def _lacking(name):
    try:
        engines.load(name).check()
    except Unavailable as missing:
        return [pytest.mark.skip(reason=missing.reason)]
    return []
