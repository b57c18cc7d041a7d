"""Which profilers fit a cell, and what is stored for each: a profile, or the reason that there is none."""

import json
from pathlib import Path

import pytest

from zoomgrad.harness import profile
from zoomgrad.harness.containment import Finished
from zoomgrad.harness.machine import interpreters
from zoomgrad.harness.plan import planning
from zoomgrad.harness.plan.presets import Selection
from zoomgrad.results.profile import PARTS
from zoomgrad.results.store import Store

ALL = list(profile.PROFILERS)


@pytest.fixture(scope="module")
def installed():
    return interpreters.discover()


def plan_of(installed, *selected):
    return planning.plan("profile", installed, Selection(*selected), command=["zoomgrad", "profile"], blocks=0)


@pytest.fixture
def plan(installed, running):
    return plan_of(installed, ["tuple"], ["xor"], [running.name])


@pytest.fixture
def store(plan, tmp_path):
    return Store.create(plan.run, under=tmp_path)


class Fake:
    """Fake worker that gives the same reply to every command, and keeps the commands and jobs."""

    def __init__(self, **reply):
        self.reply = reply
        self.commands, self.jobs = [], []

    def __call__(self, command, environment, folder, limits):
        self.commands.append(command)
        self.jobs.append(json.loads((Path(folder) / "job.json").read_text()))
        (Path(folder) / "reply.json").write_text(json.dumps(self.reply))
        return Finished(0, "")


def test_profilers_by_cell(installed, running):
    """Scalene does not run on PyPy, and only interpreted engines have an anatomy."""
    engines, interpreters = ["tuple", "gcc-O1"], [running.name, *(i.name for i in installed if i.has_jit)]
    chosen = plan_of(installed, engines, ["xor"], interpreters)
    of_cell = {}
    for cell, profiler in profile.planned(chosen, ALL):
        of_cell.setdefault((cell.engine, cell.interpreter), []).append(profiler)
    for interpreter in interpreters:
        lines = [] if interpreter.startswith("pypy") else ["scalene"]
        assert of_cell["tuple", interpreter] == ["anatomy", *lines, "perf"]
        assert of_cell["gcc-O1", interpreter] == [*lines, "perf"]


def profiles_of(plan, store, profilers, seconds=2.0, **how):
    pairs = profile.planned(plan, profilers)
    return [profile.profiled(plan, store, cell, name, seconds, **how) for cell, name in pairs]


FIELDS = {"steps": 4, "seconds": 2.0, "parts": dict.fromkeys(PARTS, 0.125), "step_seconds": 1.0}


def test_a_workers_figures_are_stored(plan, store):
    fake = Fake(status="measured", fields=FIELDS)
    (kept,) = profiles_of(plan, store, ["anatomy"], run=fake)
    assert (kept.status, kept.steps, kept.parts["order"]) == ("measured", 4, 0.125)
    assert store.profiles() == [kept]
    assert fake.jobs[0]["profiler"] == "anatomy"
    assert fake.commands[0][1:3] == ["-m", "zoomgrad.harness.worker.profile"]


@pytest.mark.parametrize("status", ["skipped", "failed"])
def test_a_worker_without_a_result_is_a_profile_with_a_reason(plan, store, status):
    fake = Fake(status=status, reason="no such thing", remedy="make one")
    (kept,) = profiles_of(plan, store, ["anatomy"], run=fake)
    assert (kept.status, kept.reason, kept.remedy) == (status, "no such thing", "make one")
    assert store.profiles() == [kept]


def test_a_profiler_that_breaks_does_not_stop_the_others(plan, store, monkeypatch):
    def break_(_):
        raise ZeroDivisionError("no samples")

    monkeypatch.setitem(profile.PROFILERS, "perf", break_)
    fake = Fake(status="measured", fields=FIELDS)
    kept = profiles_of(plan, store, ["perf", "anatomy"], run=fake)
    assert [(p.profiler, p.status) for p in kept] == [("perf", "failed"), ("anatomy", "measured")]
    assert kept[0].reason == "ZeroDivisionError: no samples"


@pytest.fixture(params=["this CPython", "the oldest CPython", "PyPy"])
def on(request, installed, running):
    """Name of an interpreter, one of each kind, because each kind reports its figures differently."""
    cpythons = [i.name for i in installed if i.implementation == "cpython" and i.canonical]
    names = {
        "this CPython": running.name,
        "the oldest CPython": min(cpythons, key=lambda name: int(name.rpartition(".")[2])),
        "PyPy": next((i.name for i in installed if i.has_jit), None),
    }
    if not names[request.param]:
        pytest.skip("no PyPy on this machine")
    return names[request.param]


def test_a_real_anatomy(installed, tmp_path, on):
    chosen = plan_of(installed, ["hoisted"], ["digits"], [on])
    store = Store.create(chosen.run, under=tmp_path)
    (kept,) = profiles_of(chosen, store, ["anatomy"], 1.2)
    assert (kept.status, kept.reason) == ("measured", "")
    assert kept.part(*PARTS) == pytest.approx(1.0)
    assert min(kept.plain_step_seconds, kept.parts["build"], kept.parts["order"]) > 0
    assert store.profiles() == [kept]
