"""Choices -> Plan, and whether an old plan still holds on this machine."""

from pathlib import Path

import pytest

from zoomgrad import engines
from zoomgrad.harness.machine import facts, interpreters
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.plan import planning
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.plan.presets import Selection
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import Run


def interpreter(name, version=None, full_version=None):
    implementation, _, short = name.partition("-")
    version = version or f"{short}.0"
    return Interpreter(name, Path("/nowhere/python"), implementation, version, full_version or version)


FOUND = [interpreter("cpython-3.9"), interpreter("cpython-3.13", "3.13.1")]
PYPY = interpreter("pypy-3.9")


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(facts, "gather", lambda: {"processor": "a", "cores": "2", "system": "Linux 6"})
    monkeypatch.setattr(facts, "commit", lambda folder: "abc")


def plan(preset="smoke", found=(*FOUND, PYPY), **selected):
    return planning.plan(preset, found, Selection(**selected), command=["zoomgrad", "run"])


def places(made):
    return list(dict.fromkeys(cell.interpreter for cell in made.run.cells))


def test_every_engine_runs_on_the_newest_cpython_and_on_pypy():
    made = plan("full", workloads=["xor", "digits"])
    assert {cell.interpreter for cell in made.run.cells if cell.engine == "slots"} == {"cpython-3.13", "pypy-3.9"}
    assert made.run.reference_interpreter == "cpython-3.13"
    ladder = {name for name in engines.names() if not engines.load(name).is_peer}
    assert set(made.run.engines) >= ladder - {*planning.OPT_IN}
    assert set(made.run.workloads) == {"xor", "digits"}
    assert made.run.interpreters["cpython-3.13"].version == "3.13.1"
    assert made.total_seconds > 0


def test_a_missing_pypy_is_in_the_plan_with_its_remedy():
    made = plan(found=FOUND)
    assert places(made) == ["cpython-3.13", interpreters.PYPY]
    assert interpreters.remedy(interpreters.PYPY) == f"Install it: `uv python install {interpreters.PYPY}`."
    assert made.run.interpreters[interpreters.PYPY].version == ""


def test_only_a_selection_makes_a_run_custom():
    assert plan().run.id.endswith("-smoke")
    assert plan(engines=["tcc"], workloads=[]).run.id.endswith("-smoke-custom")


def test_the_main_command_is_planned_for_less_than_five_minutes():
    assert plan("quick").total_seconds < 300


# Resuming


@pytest.fixture
def stored():
    """A run as read back from disk."""
    return Run.model_validate_json(plan(interpreters=["cpython-3.9"]).run.model_dump_json())


def resume(run, found=(*FOUND, PYPY)):
    return planning.resume(run, found)


def test_a_resumed_run_keeps_its_plan(stored):
    resumed = resume(stored)
    assert resumed.run == stored
    assert list(resumed.order()) == list(Plan(stored, {}).order())


@pytest.mark.parametrize("fact", ["processor", "cores", "system"])
def test_times_of_two_machines_are_never_mixed(fact, stored, monkeypatch):
    monkeypatch.setattr(facts, "gather", lambda: {**stored.machine, fact: "another"})
    with pytest.raises(Unreadable, match=f"this machine differs from the run's \\({fact}"):
        resume(stored)


def test_times_of_two_builds_are_never_mixed(stored):
    rebuilt = interpreter("cpython-3.9", full_version="3.9.0 (another compiler)")
    with pytest.raises(Unreadable, match=r"cpython-3\.9 was 3\.9\.0 and is now 3\.9\.0 \(another compiler\)"):
        resume(stored, found=[rebuilt, *FOUND[1:]])


def test_a_removed_interpreter_is_missing(stored):
    assert "cpython-3.9" not in resume(stored, found=FOUND[1:]).interpreters


def test_a_missing_reference_is_reported_before_anything_runs(stored):
    with pytest.raises(Unreadable, match=r"reference cpython-3\.13 is no longer on this machine"):
        resume(stored, found=FOUND[:1])
