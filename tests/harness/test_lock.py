"""The lock that allows one timing run per machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from zoomgrad.harness.run import lock
from zoomgrad.harness.run.lock import LOCK, Busy, locked

ROOT = Path(__file__).parent.parent.parent
HOLDER = (
    "import time; from zoomgrad.harness.run.lock import locked\n"
    "with locked(wait=False):\n    print('held', flush=True); time.sleep(600)"
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


def test_a_second_run_is_refused_with_the_remedy(holder, file):
    with pytest.raises(Busy, match=f"`lsof {file}` shows its process\n  Wait for it with --wait"), locked(wait=False):
        pass


def test_the_lock_is_released_when_its_holder_is_killed(holder):
    holder.kill()
    with locked(wait=True), pytest.raises(Busy), locked(wait=False):
        pass
