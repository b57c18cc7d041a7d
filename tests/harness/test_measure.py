"""How a worker finds out how many steps a value takes, by a clock of the test's own."""

import pytest

from harness.worker import measure

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
