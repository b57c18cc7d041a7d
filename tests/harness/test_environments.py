"""Environments that the harness makes for interpreters."""

import subprocess
import sys
from pathlib import Path

import pytest

from zoomgrad.harness.machine import environments
from zoomgrad.harness.machine.environments import NoEnvironment, environment
from zoomgrad.harness.machine.interpreters import probe


@pytest.fixture
def running():
    return probe(Path(sys._base_executable))


@pytest.fixture
def somewhere_else(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path / "environments")
    return tmp_path


def test_an_environment_has_pyperf_and_is_made_once(running, somewhere_else, monkeypatch):
    python = environment(running)
    assert somewhere_else in python.parents
    check = "import pyperf, sys; print(sys.version_info[:2] == {}, sys.prefix != sys.base_prefix)"
    command = [python, "-I", "-c", check.format(sys.version_info[:2])]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["True", "True"]

    monkeypatch.setattr(environments, "uv", lambda *_: pytest.fail("a second environment was made"))
    assert environment(running) == python


def test_a_lock_that_cannot_be_installed_fails_with_uvs_message_each_time(running, somewhere_else, monkeypatch):
    monkeypatch.setattr(environments, "REQUIREMENTS", somewhere_else)
    absent = somewhere_else / "absent-1.0-py3-none-any.whl"
    (somewhere_else / "worker.lock").write_text(f"absent @ {absent.as_uri()}\n")
    for _ in range(2):
        with pytest.raises(NoEnvironment, match=r"(?s)uv pip ended with exit code .*absent-1\.0-py3-none-any\.whl"):
            environment(running)


def test_a_different_lock_makes_a_different_environment(running, somewhere_else, monkeypatch):
    monkeypatch.setattr(environments, "REQUIREMENTS", somewhere_else)
    monkeypatch.setattr(environments, "uv", lambda what, *rest: what == "venv" and Path(rest[-1]).mkdir())
    pythons = []
    for requirements in ("", "# another\n"):
        (somewhere_else / "worker.lock").write_text(requirements)
        pythons.append(environment(running))
    assert pythons[0] != pythons[1]


def test_locks_of_peers_pin_versions_over_the_workers_and_name_no_cuda():
    for lock in environments.REQUIREMENTS.glob("peers-*.lock"):
        comment, base, *pins = lock.read_text().splitlines()
        assert comment.startswith("# worker.lock ")
        assert base == "-r worker.lock"
        assert pins
        assert all("==" in pin and not pin.startswith(("nvidia", "cuda")) for pin in pins)
