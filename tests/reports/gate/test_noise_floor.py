"""The noise floor from runs of the same sources."""

import math
import random
from datetime import UTC, datetime

import pytest

from reports.gate.noise_floor import keep_noise, noise, noise_of
from results.record import Cell, Record, Run, Settings

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def cell(engine):
    return Cell(engine=engine, interpreter="cpython-3.13", workload="xor")


def race(number, **seconds):
    run = Run(
        id=f"run-{number}",
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


RACES = [
    race(1, baseline=1.0, tcc=0.010),
    race(2, baseline=2.0, tcc=0.022),
    race(3, baseline=1.0, tcc=0.0095, slots=0.5),
]


def test_two_runs_exceed_the_floor_by_chance_one_time_in_twenty():
    """A simulation computes the floor from eight runs, then counts how often two further runs differ by more."""
    chance, beyond, trials = random.Random(4), 0, 400
    for _ in range(trials):
        drawn = [race(number, baseline=1.0, tcc=0.01 * math.exp(chance.gauss(0, 0.03))) for number in range(10)]
        (one, other) = (records[-1].step_seconds[0] for _, records in drawn[8:])
        beyond += abs(math.log(one / other)) > math.log1p(noise(drawn[:8]).floor(cell("tcc")))
    assert 0.02 < beyond / trials < 0.09


def test_noise_needs_runs_that_differ_only_in_time():
    first, second = RACES[:2]
    for fields, said in (
        ({"commit": "0123abc"}, "differ in commit or machine"),
        ({"machine": {"processor": "b"}}, "differ in commit or machine"),
        ({"settings": Settings(value_seconds=1.0)}, "measured differently: value_seconds 1, not 0.4"),
    ):
        with pytest.raises(ValueError, match=said):
            noise([first, (second[0].model_copy(update=fields), second[1])])
    with pytest.raises(ValueError, match="at least two runs, each once"):
        noise([first, first])


def test_a_cell_measured_in_only_one_run_has_no_floor():
    assert noise(RACES).floor(cell("slots")) is None
    with pytest.raises(ValueError, match="at least two runs"):
        noise(RACES[:1])


def test_a_floor_is_stored_per_preset_and_machine(tmp_path):
    run = RACES[0][0]
    assert noise_of(run, tmp_path) is None
    keep_noise("smoke", noise(RACES), tmp_path)
    assert noise_of(run, tmp_path) == noise(RACES)
    assert noise_of(run.model_copy(update={"preset": "quick"}), tmp_path) is None
    assert noise_of(run.model_copy(update={"machine": {"processor": "b"}}), tmp_path) is None


def test_compile_times_have_a_floor_of_their_own():
    """Two runs compile for 2 and 3 steps of the baseline; the gate compares just that."""
    runs = []
    for number, seconds in enumerate((2.0, 3.0)):
        run, records = race(number, baseline=1.0, tcc=0.01)
        runs.append((run, [one.model_copy(update={"phases": {"compile": seconds}}) for one in records]))
    found = noise(runs)
    assert found.floor(cell("tcc")) == 0.0
    assert found.compile_floor(cell("tcc")) > 0.5
    assert noise(RACES).compile_floor(cell("tcc")) is None
