"""Which engines a test is for: running it on all of them would compile the same C a dozen times."""

import pytest

import engines
from engines.api import Unavailable


def of_each_value():
    """One engine for each Value class: compiled engines share theirs."""
    first = {}
    for name in engines.names():
        first.setdefault(engines.load(name).Value, name)
    return list(first.values())


def runnable(*, most_compile_row_seconds=1.0):
    """Every engine that compiles fast enough, as parameters; those that can't run here are skipped, with the reason."""
    chosen = [n for n in engines.names() if engines.load(n).typical_compile_row_seconds <= most_compile_row_seconds]
    return [pytest.param(name, marks=_lacking(name)) for name in chosen]


FAST_TO_COMPILE = 3e-5
"""Seconds a row: TCC and Python itself, but not optimising compilers."""


def _lacking(name):
    try:
        engines.load(name).check()
    except Unavailable as missing:
        return [pytest.mark.skip(reason=missing.reason)]
    return []
