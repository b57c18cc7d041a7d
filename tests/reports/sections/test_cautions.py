"""Cautions about a run's figures, and the runs that should have none."""

import pytest

from zoomgrad.reports.sections.cautions import cautions
from zoomgrad.reports.view import view


def found(example, **run):
    changed = example.run.model_copy(update=run)
    return [c.cause for c in cautions(view(changed, example.records))]


@pytest.fixture
def quiet(example):
    return example.only(lambda cell: cell.interpreter == "cpython-3.13" and cell.workload == "mnist")


def loaded(example, *loads):
    """Return the run with other processes' load set to `loads` in turn, one per record."""
    pairs = zip(example.records, loads * len(example.records), strict=False)
    records = tuple(record.model_copy(update={"other_load": load}) for record, load in pairs)
    return type(example)(example.run, records)


@pytest.mark.parametrize(
    ("loads", "run", "cause"),
    [
        ((0.0,), {}, ""),
        ((1.5,), {}, "other processes used 1.5 processors"),
        ((1.5, 0.0, 0.0, 0.0, 0.0, 0.0), {}, ""),
        ((0.0,), {"blocks": 2}, "2 blocks: too few"),
        ((0.0,), {"blocks": 2, "precision": 0.05}, ""),
        ((0.0,), {"machine": {"frequency governor": "powersave"}}, "powersave"),
        ((0.0,), {"machine": {"frequency governor": "performance"}}, ""),
    ],
)
def test_a_caution_names_the_load_the_blocks_or_the_governor(quiet, loads, run, cause):
    causes = found(loaded(quiet, *loads), **{"machine": {}, **run})
    assert (len(causes) == 1 and cause in causes[0]) if cause else causes == []


def test_a_machine_with_fast_and_slow_moments(quiet):
    def paced(record):
        paces = tuple(0.01 * (1 + record.block) for _ in record.step_seconds)
        return record.model_copy(update={"pace_seconds": paces})

    (cause, *_) = found(quiet.mapped(paced), machine={})
    assert cause.startswith("The machine's speed varied: the same work took 3.0 times as long")
    even = quiet.mapped(lambda record: record.model_copy(update={"pace_seconds": (0.01,) * len(record.step_seconds)}))
    assert found(even, machine={}) == []


def test_wide_intervals(quiet):
    def shake(record):
        factor = 1.0 if record.cell.engine == "baseline" else 1.0 + record.block
        return record.model_copy(update={"step_seconds": tuple(factor * seconds for seconds in record.step_seconds)})

    shaky = quiet.mapped(shake)
    assert any("are known only to ±25 % or worse" in cause for cause in found(shaky, machine={}))


def test_a_run_without_a_result_has_no_caution(quiet):
    assert found(quiet.interrupted(0), machine={"frequency governor": "powersave"}) == []
