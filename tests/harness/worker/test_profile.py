"""A worker under a profiler, on every interpreter."""

import gc
import sys

import pytest

from tests.engines.ladder import runs_here
from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.worker import anatomy, profile

ON_PYPY = sys.implementation.name == "pypy"


@pytest.fixture
def job(tmp_path):
    return {
        "engine": "tuple",
        "workload": "xor",
        "reply_file": str(tmp_path / "reply.json"),
        "profiler": "perf",
        "seconds": 0.1,
    }


def test_a_compiled_engine_is_prepared_again_for_half_of_the_time(job):
    plain, compiled = profile.profile(job)["fields"], profile.profile({**job, "engine": "bytecode"})["fields"]
    assert (plain["preparations"], compiled["preparations"] > 0) == (0, True)
    assert min(plain["steps"], compiled["steps"]) >= 1 and plain["seconds"] > 0


INTERPRETED = ("baseline", "hoisted", "local-grads", "replay")
NEEDS_C = pytest.mark.skipif(not runs_here("native"), reason="Value can't be built in C here")


@pytest.mark.parametrize("name", [*INTERPRETED, pytest.param("native", marks=NEEDS_C)])
def test_the_parts_of_a_step_add_up(job, name):
    fields = profile.profile({**job, "engine": name, "profiler": "anatomy"})["fields"]
    parts, step_seconds = fields["parts"], fields["seconds"] / fields["steps"]
    assert tuple(parts) == anatomy.PARTS
    assert all(seconds >= 0 for seconds in parts.values())
    assert sum(parts.values()) == fields["step_seconds"]
    # A step's time contains only its parts, timed by their own clock, and the loop around them. PyPy's JIT may compile
    # between two readings, and a step of `replay` takes 5 µs there.
    assert sum(parts.values()) == pytest.approx(step_seconds, rel=0.5 if ON_PYPY else 0.05)
    assert sum(fields["pauses"].values()) == pytest.approx(parts["collector"], abs=step_seconds / 20)
    assert fields["plain_step_seconds"] > 0
    rebuilds = name != "replay"
    assert (parts["order"] > 0) == (rebuilds and name != "native"), "native orders the graph within its backward pass"
    assert min(parts["build" if rebuilds else "forward"], parts["backward"], parts["update"]) > 0 or ON_PYPY


@pytest.fixture
def clock(monkeypatch):
    """A clock, and the function `passes(seconds)` that alone advances it."""
    now = [0.0]
    monkeypatch.setattr(anatomy, "perf_counter", lambda: now[0])
    made = anatomy.Clock()

    def passes(seconds):
        now[0] += seconds

    return made, passes


def test_a_moment_belongs_to_one_part(clock):
    clock, passes = clock

    def order():
        passes(3.0)
        passes(1.0)
        clock.pause(1.0)

    def backward():
        passes(2.0)
        clock.timed("order", order)()

    def train():
        passes(0.5)
        clock.timed("backward", backward)()

    clock.pause(9.0)  # before anything began
    clock.timed("rest", train)()
    parts = {part: seconds for part, seconds in clock.seconds.items() if seconds}
    assert parts == {"rest": 0.5, "backward": 2.0, "order": 3.0, "collector": 1.0}
    assert {part: seconds for part, seconds in clock.pauses.items() if seconds} == {"order": 1.0}


def test_parts_add_up_if_a_pause_is_reported_late(clock):
    clock, passes = clock

    def backward():
        clock.timed("order", lambda: passes(2.0))()
        passes(0.5)
        clock.pause(1.5)  # it interrupted `order`

    def train():
        clock.timed("backward", backward)()
        passes(2.0)

    clock.timed("rest", train)()
    parts = {part: seconds for part, seconds in clock.seconds.items() if seconds}
    assert parts == {"order": 2.0, "rest": 1.0, "collector": 1.5}


def test_a_pause_from_before_a_step_does_not_lengthen_it(clock):
    clock, passes = clock

    def train():
        passes(2.0)
        clock.pause(9.0)  # nearly all of it before the step

    clock.timed("rest", train)()
    assert sum(clock.seconds.values()) == 2.0


def test_the_memory_has_a_floor_after_enough_steps(monkeypatch):
    trainer = engines.load("tuple").prepare(workloads.load("xor"))
    resident = iter(range(10**6, 2 * 10**6))
    monkeypatch.setattr(anatomy, "resident_bytes", lambda: next(resident))
    watched = anatomy.watch(trainer, 0.1)
    assert 10**6 < watched["early_floor_bytes"] < watched["late_floor_bytes"]
    monkeypatch.setattr(anatomy, "FEWEST_STEPS", 10**9)
    assert anatomy.watch(trainer, 0.01)["late_floor_bytes"] == 0


def test_the_anatomy_leaves_nothing_switched_on():
    before = list(getattr(gc, "callbacks", []))
    engine, workload = engines.load("tuple"), workloads.load("xor")
    trainer = engine.prepare(workload)
    anatomy.anatomy(trainer, 0.01)
    assert getattr(gc, "callbacks", []) == before
    assert "topo" not in vars(engine.Value)
    assert not set(trainer.STAGES) & set(vars(trainer))
