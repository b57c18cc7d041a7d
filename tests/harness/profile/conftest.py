"""Fixtures for tests of profilers: the session of a cell on the interpreter that runs the tests."""

import shutil
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from zoomgrad.harness.machine import interpreters
from zoomgrad.harness.profile.session import Session
from zoomgrad.results.record import Cell, Settings


@pytest.fixture(scope="session")
def running():
    """The interpreter that runs these tests, among those of the machine."""
    version = ".".join(map(str, sys.version_info[:3]))
    return next(one for one in interpreters.discover() if one.name.startswith("cpython") and one.version == version)


class MakeSession:
    """`session(engine, workload)`: the Session that a profiler gets."""

    def __init__(self, folder, running):
        self.folder = folder
        self._running = running
        self.common = {}

    def __call__(self, profiler, engine, workload="xor", *, seconds=0.3):
        cell = Cell(engine=engine, interpreter=self._running.name, workload=workload)
        self.common = {"cell": cell, "status": "measured", "started_at": datetime.now(UTC)}
        return Session(profiler, cell, self._running, seconds, Settings(timeout_seconds=90.0), self.folder)

    @property
    def has_symbols(self):
        """Whether the interpreter still has the names of its functions, which distributions strip."""
        nm = shutil.which("nm")
        if not nm:
            return False
        listing = subprocess.run([nm, sys.executable], capture_output=True, text=True).stdout
        return "_PyEval_EvalFrameDefault" in listing or "pyenv" in sys.base_prefix


@pytest.fixture
def session(tmp_path, running):
    return MakeSession(tmp_path / "kept", running)
