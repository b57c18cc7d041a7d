"""`import zoomgrad`: the names that it promises, and how little it imports."""

import subprocess
import sys

import pytest

import zoomgrad
from zoomgrad import engines
from zoomgrad.engines.api import Unavailable

HEAVY = ("numpy", "pandas", "cffi", "pyperf", "zoomgrad.engines.kernel.program", "harness", "datasets", "results")


def test_every_name_is_there():
    for name in zoomgrad.__all__:
        assert getattr(zoomgrad, name) is not None
        assert name in dir(zoomgrad)
    with pytest.raises(AttributeError, match="no attribute 'Valeu'"):
        _ = zoomgrad.Valeu


def test_the_names_are_those_that_engines_raise_and_return():
    assert zoomgrad.names() == engines.names()
    assert zoomgrad.load("tuple") is engines.load("tuple")
    assert zoomgrad.Unavailable is Unavailable
    with pytest.raises(zoomgrad.UnknownName):
        zoomgrad.load("tupel")


def test_the_import_is_light():
    code = f"import sys, zoomgrad; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []
