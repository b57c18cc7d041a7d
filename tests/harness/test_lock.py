"""The lock that allows one timing run per machine: its holder, waiting runs, and other users' files in /tmp."""

import subprocess
import sys
from pathlib import Path

import pytest

from zoomgrad.harness.run import lock
from zoomgrad.harness.run.lock import LOCK, Busy, locked

ROOT = Path(__file__).parent.parent.parent
HOLDER = (
    "import time; from zoomgrad.harness.run.lock import locked\n"
    "with locked():\n    print('held', flush=True); time.sleep(600)"
)


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCK, str(tmp_path / "measuring.lock"))
    monkeypatch.setattr(lock, "WAITING_SECONDS", 0.05)
    return tmp_path / "measuring.lock"


@pytest.fixture
def holder(file):
    """Another process, which holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_run_learns_who_holds_the_lock(holder):
    with pytest.raises(Busy) as busy, locked():
        pass
    assert str(busy.value).startswith(f"pid {holder.pid} (")
    assert str(busy.value).endswith(f"` in {ROOT})")
    assert ", since " in str(busy.value)
    assert str(busy.value).isprintable()


def test_the_lock_is_released_when_its_holder_is_killed(holder):
    holder.kill()
    holder.wait()
    with locked():
        pass


def test_a_waiting_run_is_notified_once_and_gets_the_lock(holder, file):
    notices = []

    def waiting(who):
        notices.append(who)
        file.unlink()  # then the new file counts
        holder.kill()

    with locked(waiting=waiting), pytest.raises(Busy), locked():
        pass
    assert [f"pid {holder.pid}" in notice for notice in notices] == [True]
