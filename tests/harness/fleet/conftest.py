"""Fixtures of a fleet on this machine."""

import socket
import subprocess
import sys

import pytest

from harness.fleet.where import SECRET


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """The shared secret of a fleet, in a file."""
    scheduler = pytest.importorskip("harness.fleet.scheduler", reason="the extra `fleet` is not installed")
    file = tmp_path / "secret.pem"
    scheduler.make_secret(file)
    monkeypatch.setenv(SECRET, str(file))
    return file


@pytest.fixture
def start(tmp_path):
    """`start(module, *arguments)` starts a process of a fleet that ends with the test."""
    started = []

    def run(module, *arguments):
        log = tmp_path / f"{module}-{len(started)}.txt"
        with log.open("w") as file:
            command = [sys.executable, "-m", module, *map(str, arguments)]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        process.log = log
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
