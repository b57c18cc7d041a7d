"""The phases of a preparation: they add up to its wall time, and the graph is freed as part of one of them."""

from __future__ import annotations

import platform
import weakref
from types import SimpleNamespace

import pytest

from tests.engines.compiled.compiling import ONE_OF_EACH_KIND, usable
from zoomgrad.engines.compiled import clock as module
from zoomgrad.engines.compiled.clock import PHASES, Clock
from zoomgrad.harness import workloads


@pytest.fixture
def time(monkeypatch):
    """A clock for `compiled/clock.py`: `time.now` in seconds, which tests advance, and each reading a little."""
    time = SimpleNamespace(now=100.0, readings=[])

    def read():
        time.now += 1.0
        time.readings.append(time.now)
        return time.now

    monkeypatch.setattr(module, "perf_counter", read)
    return time


class Slow:
    """The workload `xor`, whose rows take time, and whose model takes time until it is freed."""

    def __init__(self, time):
        self.time, self.xor = time, workloads.load("xor")

    def __getattr__(self, name):
        return getattr(self.xor, name)

    def model(self, nn):
        model = self.xor.model(nn)
        weakref.finalize(model, self.wait, 1000.0)
        return model

    def wait(self, seconds):
        self.time.now += seconds

    def columns(self):
        self.wait(10_000.0)
        return self.xor.columns()


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_phases_add_up_to_the_preparation(time, name):
    """Nothing that takes time is left out, however long it takes."""
    phases = usable(name).prepare(Slow(time)).phases
    assert sum(phases.values()) == time.readings[-1] - time.readings[0]
    assert phases["load"] > 10_000.0, "the check of the rows is part of the preparation"
    if platform.python_implementation() == "CPython":
        assert 1_000.0 < phases["trace"] < 2_000.0, "the graph must be freed before the next phases need memory"
        assert time.now == time.readings[-1], "something was freed after the last phase"


def test_a_moment_belongs_to_one_phase(time):
    clock = Clock()
    time.now += 5.0
    with clock.phase("trace"):
        time.now += 10.0
    time.now += 20.0  # after the block, the phase goes on
    with clock.phase("compile"):
        time.now += 40.0
        assert clock.phases == {**dict.fromkeys(PHASES, 0.0), "trace": 32.0}
    assert clock.phases["compile"] == 41.0
    with clock.phase("trace"):
        time.now += 80.0
    clock.stop()
    time.now += 160.0
    assert clock.phases["trace"] == 32.0 + 82.0
    assert sum(clock.phases.values()) == time.readings[-1] - time.readings[0]
