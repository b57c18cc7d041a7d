"""How a worker finds out how many steps a value takes, by a clock of the test's own; and what it tells of compilers."""

import pytest

import engines
from engines.api import Unavailable
from harness.worker import measure
from results.record import Record

COLD, WARM, COLD_STEPS = 1e-3, 1e-5, 1000


class Warming:
    """A trainer whose steps become a hundred times as fast after a second, and the clock that they take."""

    def __init__(self):
        self.now, self.steps = 0.0, 0

    def train(self, steps):
        cold = max(0, min(steps, COLD_STEPS - self.steps))
        self.now += cold * COLD + (steps - cold) * WARM
        self.steps += steps


@pytest.fixture
def trainer(monkeypatch):
    warming = Warming()
    monkeypatch.setattr(measure, "perf_counter", lambda: warming.now)
    return warming


def calibrated(trainer, steps_per_value=0):
    return measure.calibrate(trainer, {"steps_per_value": steps_per_value, "value_seconds": 0.05})


def test_a_jit_is_warm_before_steps_are_counted(trainer, monkeypatch):
    monkeypatch.setattr(measure, "HAS_JIT", True)
    step_seconds, steps = calibrated(trainer)
    assert step_seconds == pytest.approx(WARM)
    assert steps == pytest.approx(0.05 / WARM, abs=1)
    assert trainer.now >= measure.JIT_SECONDS


def test_without_one_a_value_is_counted_at_once(trainer, monkeypatch):
    monkeypatch.setattr(measure, "HAS_JIT", False)
    assert calibrated(trainer) == (pytest.approx(COLD), 50)
    assert trainer.now < 0.2


@pytest.mark.parametrize("jit", [False, True])
def test_a_later_block_repeats_what_the_first_found(trainer, monkeypatch, jit):
    monkeypatch.setattr(measure, "HAS_JIT", jit)
    assert calibrated(trainer, steps_per_value=700) == (pytest.approx(COLD), 700)
    assert trainer.steps == 700


@pytest.mark.parametrize("name", ["tcc", "clang-O1-published", "rerolled-gcc-generic", "handwritten", "tcc-extension"])
def test_an_outcome_names_the_compiler_and_its_flags(name):
    engine = engines.load(name)
    try:
        tool = engine.toolchain()
    except Unavailable as missing:
        pytest.skip(missing.reason)
    told = measure.compiled_by(engine)
    assert told == {"compiler": f"{tool.family} {tool.version}", "compiler_flags": list(engine.flags)}
    assert told.keys() <= Record.model_fields.keys()


@pytest.mark.parametrize("name", ["tuple", "python-source", "rerolled-numpy"])
def test_what_compiles_no_c_names_none(name):
    assert measure.compiled_by(engines.load(name)) == {}
