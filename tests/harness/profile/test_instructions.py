"""Instructions of a step: how they are counted and stored, and that a count is reproducible."""

import json
import shutil
from pathlib import Path

import pytest

import engines
from engines import asking
from engines.api import Unavailable
from harness.containment import Finished
from harness.profile import instructions
from harness.profile.profile_session import NoProfile
from harness.worker.profiling import count
from reports.profiling.instructions import change
from results.profile import PROFILE, InstructionsProfile


def no_counter(*_):
    raise Unavailable("no counters", "Count with callgrind.")


class Answers:
    """Fake worker that gives the same reply to every command."""

    def __init__(self, **reply):
        self.reply = {
            "status": "measured",
            "steps": 50,
            "counts": [1000.0, 6000.0],
            "compiler": "tcc 0.9",
            "flags": [],
        }
        self.reply.update(reply)
        self.command, self.job = [], {}

    def __call__(self, command, environment, folder, limits):
        self.command = command
        self.job = json.loads((Path(folder) / "job.json").read_text())
        (Path(folder) / "reply.json").write_text(json.dumps(self.reply))
        return Finished(0, "")


@pytest.fixture
def callgrind(monkeypatch):
    """A machine without processor counters, which has to use callgrind."""
    monkeypatch.setattr(count, "Processor", no_counter)
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed: `apt install valgrind`")


def test_a_steps_count_comes_from_the_difference_of_two_portions(session, callgrind):
    answers = Answers()
    counted = instructions.profile(session("tcc", run=answers))
    assert (counted["step_instructions"], counted["steps"]) == (100.0, 50)
    assert answers.command[1] == "--tool=callgrind"
    assert answers.command[-3:-1] == ["-m", "harness.worker.profiling.count"]
    assert (answers.job["counter"], answers.job["target"]) == ("callgrind", counted["target"])
    assert counted["tool"].startswith("callgrind ")


def test_a_processor_with_counters_needs_no_callgrind(session, monkeypatch):
    class Counting:
        def close(self):
            pass

    monkeypatch.setattr(count, "Processor", Counting)
    answers = Answers()
    counted = instructions.profile(session("tcc", run=answers))
    assert answers.command[1:3] == ["-m", "harness.worker.profiling.count"]
    assert (answers.job["counter"], answers.job["target"]) == ("processor", "")
    assert counted["tool"].startswith("instructions:u")


def test_without_any_counter_the_remedy_says_how_to_get_one(session, monkeypatch):
    monkeypatch.setattr(count, "Processor", no_counter)
    monkeypatch.setattr(instructions, "which", lambda _: None)
    with pytest.raises(NoProfile, match="no counters, and valgrind is not installed") as none:
        instructions.profile(session("tcc"))
    assert (none.value.status, none.value.remedy) == ("skipped", instructions.REMEDY)


def test_a_counter_that_saw_nothing_is_a_failure(session, callgrind):
    with pytest.raises(NoProfile, match="saw no call of compiled code"):
        instructions.profile(session("tcc", run=Answers(counts=[0.0, 0.0])))


def test_a_worker_that_dies_is_reported(session, callgrind):
    def dies(command, environment, folder, limits):
        return Finished(-4, "Illegal instruction")

    with pytest.raises(NoProfile, match="SIGILL") as none:
        instructions.profile(session("tcc", run=dies))
    assert none.value.status == "failed"


@pytest.mark.parametrize("engine", [pytest.param("tcc", marks=pytest.mark.exhaustive), "rerolled-gcc"])
def test_a_count_is_reproducible(engine, session, callgrind):
    """Real workers under real callgrind, one of them with vectors, which valgrind supports only in part."""
    try:
        engines.load(engine).check()
    except Unavailable as missing:
        pytest.skip(missing.reason)
    chosen = session(engine)
    first, second = (PROFILE.validate_python(self_made(chosen, session)) for _ in range(2))
    assert isinstance(first, InstructionsProfile)
    assert first.step_instructions > 50
    assert change(second, first) == 1.0
    assert (chosen.folder / "callgrind.out.1").exists()


def self_made(chosen, session):
    return {"profiler": "instructions", **session.common, **instructions.profile(chosen)}


@pytest.mark.parametrize("text", ["exit 1", "exec sleep 1000", "exec yes"])
def test_a_valgrind_that_misbehaves_is_skipped_with_the_reason(tmp_path, monkeypatch, text):
    def refuse():
        raise Unavailable("no counter", "")

    program = tmp_path / "valgrind"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(asking, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(count, "Processor", refuse)
    with pytest.raises(NoProfile, match=f"no counter, and {program} (ended|took longer|wrote)"):
        instructions.find()
