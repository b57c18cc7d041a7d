"""Runs of the same sources -> a noise floor."""

from datetime import UTC, datetime

import pytest

from results.noise import keep_noise, noise, noise_of
from results.record import Cell, Record, Run

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def cell(engine):
    return Cell(engine=engine, interpreter="cpython-3.13", workload="xor")


def race(**seconds):
    run = Run(
        id="a-run",
        created_at=NOW,
        command=(),
        preset="smoke",
        seed=0,
        blocks=3,
        cells=tuple(cell(engine) for engine in seconds),
        reference_interpreter="cpython-3.13",
        engines={},
        workloads={},
        interpreters={},
        machine={"processor": "a"},
    )
    records = [
        Record(cell=cell(engine), block=block, status="measured", started_at=NOW, step_seconds=(value,))
        for engine, value in seconds.items()
        for block in range(3)
    ]
    return run, records


RACES = [race(baseline=1.0, tcc=0.010), race(baseline=2.0, tcc=0.022), race(baseline=1.0, tcc=0.0095, slots=0.5)]


def test_the_floor_is_the_largest_change_between_any_two_runs():
    found = noise(RACES)
    assert found.floor(cell("tcc")) == pytest.approx(0.011 / 0.0095 - 1)


def test_what_one_run_measured_alone_has_no_floor():
    assert noise(RACES).floor(cell("slots")) is None
    with pytest.raises(ValueError, match="two at least"):
        noise(RACES[:1])


def test_a_floor_is_kept_for_its_preset_and_its_machine(tmp_path):
    run = RACES[0][0]
    assert noise_of(run, tmp_path) is None
    keep_noise("smoke", noise(RACES), tmp_path)
    assert noise_of(run, tmp_path) == noise(RACES)
    assert noise_of(run.model_copy(update={"preset": "quick"}), tmp_path) is None
    assert noise_of(run.model_copy(update={"machine": {"processor": "b"}}), tmp_path) is None
