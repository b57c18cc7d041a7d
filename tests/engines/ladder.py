"""Which engines a test is for: running it on all of them would compile the same C a dozen times."""

from array import array

import pytest

import datasets
import engines
from engines.api import Unavailable
from harness import workloads


def of_each_value():
    """One engine for each Value class: compiled engines share theirs, and some know none."""
    first = {}
    for name in engines.names():
        value = engines.load(name).Value
        if value is not None:
            first.setdefault(value, name)
    return list(first.values())


def runnable(*, most_compile_row_seconds=1.0):
    """Every engine that compiles fast enough, as parameters; those that can't run here are skipped, with the reason."""
    chosen = [n for n in engines.names() if engines.load(n).typical_compile_row_seconds <= most_compile_row_seconds]
    return [pytest.param(name, marks=_lacking(name)) for name in chosen]


FAST_TO_COMPILE = 3e-5
"""Seconds a row: TCC and Python itself, but not optimising compilers."""


def willing(name, workload):
    """The engine of that name, or a skip that tells why it can't run that workload."""
    engine = engines.load(name)
    refusal = engine.supports(workload)
    if refusal:
        pytest.skip(f"{name}: {refusal}")
    return engine


def available(name):
    """The workload of that name, or a skip that says why its data are missing."""
    workload = workloads.load(name)
    try:
        workload.data()
    except datasets.Unavailable as missing:
        pytest.skip(missing.reason)
    return workload


def promised(name, values):
    """What compares equal to all that the engine may give in place of the reference's numbers."""
    bound = engines.load(name).error_bound
    return array("d", values) if bound is None else pytest.approx(list(values), rel=bound, abs=bound)


def _lacking(name):
    try:
        engines.load(name).check()
    except Unavailable as missing:
        return [pytest.mark.skip(reason=missing.reason)]
    return []
