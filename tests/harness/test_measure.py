"""How a worker chooses the stretch of a value, on a scripted clock, and how it names its compiler."""

from array import array

import pytest

from tests.harness.misbehaving import cheats
from zoomgrad import engines
from zoomgrad.engines.api import Shape, Unavailable
from zoomgrad.harness import workloads
from zoomgrad.harness.worker import measure
from zoomgrad.harness.worker.job import Mismatch
from zoomgrad.harness.worker.proof import prepare_proof
from zoomgrad.results.record import Figures

COLD, WARM, COLD_STEPS = 1e-3, 1e-5, 1000


class Warming:
    """A trainer whose steps become a hundred times faster after a second, and the clock that they advance."""

    def __init__(self):
        self.now, self.steps, self.reading = 0.0, 0, 0.0

    def restart(self, *, batch): ...

    def numbers(self):
        self.now += self.reading
        return array("d")

    parameters = gradients = numbers
    losses = property(numbers)

    def train(self, steps):
        cold = max(0, min(steps, COLD_STEPS - self.steps))
        self.now += cold * COLD + (steps - cold) * WARM
        self.steps += steps


class Proof:
    """A proof that can compare this many steps, from many starts."""

    def __init__(self, steps):
        self.steps = steps

    def starts(self, steps):
        return range(1, 100)


@pytest.fixture
def trainer(monkeypatch):
    warming = Warming()
    monkeypatch.setattr(measure, "perf_counter", lambda: warming.now)
    monkeypatch.setattr(measure, "HAS_JIT", False)
    return warming


def calibrated(trainer, *, most=1 << 18, stretch_steps=0, steps_per_value=0, shapes=()):
    """Return the seconds and passes of a calibrated stretch, and its steps."""
    stretch = measure.Stretch(trainer, workloads.load("xor"), Proof(most))
    job = {"stretch_steps": stretch_steps, "steps_per_value": steps_per_value, "value_seconds": 0.05, "values": 3}
    return *measure.calibrate(stretch, job, shapes), stretch.steps


@pytest.mark.parametrize(("jit", "step", "steps"), [(True, WARM, 4096), (False, COLD, 64)])
def test_a_jit_is_warm_before_steps_are_counted(trainer, monkeypatch, jit, step, steps):
    monkeypatch.setattr(measure, "HAS_JIT", jit)
    assert calibrated(trainer) == (pytest.approx(steps * step), 1, steps)
    assert (trainer.now >= measure.JIT_SECONDS) == jit


SHAPES = [Shape((None,) * 2, (0, 5, 6, 7)), Shape((None,) * 6, (1, 2, 3, 4))]
"""Rows of lengths 2, 6, 6, 6, 6, 2, 2, 2, which are 4 on average."""


@pytest.mark.parametrize(
    ("steps", "most", "expected"), [(1, 8, 2), (2, 8, 2), (4, 8, 2), (8, 8, 8), (64, 64, 64), (1, 1, 1)]
)
def test_a_stretch_has_rows_of_typical_length(steps, most, expected):
    """The first row, and the first four, are not typical. With a single step to compare there is no choice."""
    assert measure.typical(SHAPES, steps, most) == expected
    assert measure.typical(SHAPES[:1], steps, most) == steps
    # Rows of lengths 10, 1 and 1, which wrap around: the first four are 10, 1, 1 and 10.
    wrapped = [Shape((None,) * 10, (0,)), Shape((None,), (1, 2))]
    assert [measure.typical(wrapped, count, 64) for count in (1, 2, 8, 64)] == [1, 8, 8, 64]


@pytest.mark.parametrize(("step", "reading", "steps"), [(0.9, 0.0, 1), (0.01, 0.0, 4), (0.01, 0.004, 32)])
def test_a_stretch_exceeds_a_value_for_one_step_or_if_reading_takes_long(trainer, monkeypatch, step, reading, steps):
    monkeypatch.setattr(trainer, "train", lambda steps: setattr(trainer, "now", trainer.now + step * steps))
    trainer.reading = reading  # of losses, gradients and parameters each
    assert calibrated(trainer) == (pytest.approx(step * steps + 3 * reading), 1, steps)


def test_no_stretch_is_longer_than_the_evidence(trainer):
    seconds, passes, steps = calibrated(trainer, most=8)
    assert steps == 8
    assert passes * seconds == pytest.approx(0.05, rel=0.2)


@pytest.mark.parametrize("jit", [False, True])
def test_a_later_block_uses_the_first_blocks_stretch(trainer, monkeypatch, jit):
    monkeypatch.setattr(measure, "HAS_JIT", jit)
    assert calibrated(trainer, stretch_steps=256, steps_per_value=768) == (pytest.approx(256 * COLD), 3, 256)
    assert trainer.steps == 256


def timed(cheat, evidence, monkeypatch):
    """Steps that the clock counts for stretches of 64 steps, which are proven: one to calibrate, then three values."""
    engine, workload = engines.load("slots"), workloads.load("xor")
    trainer = cheat(engine.prepare(workload))
    job = {"reference_folder": str(evidence), "reference_cell": "tuple/here/xor", "reference_steps": 64}
    proof = prepare_proof(engine, trainer, workload, {**job, "reference_drills": [], "values": 3})
    monkeypatch.setattr(measure, "perf_counter", lambda: trainer.work)
    stretch, seconds = measure.Stretch(trainer, workload, proof, 64), []
    for start in (0, *proof.starts(64)[:3]):
        seconds.append(stretch.time(start))
        stretch.prove()
    return seconds[1:]


@pytest.mark.parametrize("cheat", [cheats.Honest, cheats.Deferring, cheats.Remembering, cheats.WorkingAhead])
def test_no_work_is_outside_the_clock(cheat, evidence, monkeypatch):
    """Reading the results is inside, no two timed stretches are the same work, and a long restart counts."""
    assert timed(cheat, evidence, monkeypatch) == [64, 64, 64]


def test_results_that_are_computed_later_are_a_mismatch(evidence, monkeypatch):
    with pytest.raises(Mismatch, match=r"0 parameters instead of \d+"):
        timed(cheats.AnsweringLate, evidence, monkeypatch)


@pytest.mark.parametrize("name", ["tcc", "handwritten"])
def test_a_reply_names_the_compiler_and_its_flags(name):
    engine = engines.load(name)
    try:
        tool = engine.toolchain()
    except Unavailable as missing:
        pytest.skip(missing.reason)
    figures = measure.compiled_by(engine)
    assert figures == {"compiler": f"{tool.family} {tool.version}", "compiler_flags": list(engine.flags)}
    assert figures.keys() <= Figures.model_fields.keys()
