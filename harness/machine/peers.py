"""Environments of peers: big libraries, installed on demand only, each in an environment of its own.

A lock pins versions but no hashes, because PyTorch has several builds of a version, and users choose theirs by uv's own
variables. Before anything is downloaded, uv resolves the lock for the interpreter, which gives the files and their
sizes; then exactly these files are installed, and uv checks their hashes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.machine import downloads, environments
from harness.machine.downloads import Download
from harness.machine.environments import NoEnvironment
from harness.machine.interpreters import Interpreter

WORKER = "worker"
"""The lock of ordinary workers, which has NumPy where it installs."""


class NoPeer(Exception):
    """A peer has no environment. The text is the reason; `remedy` is what the reader can do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


class PeerEnvironments:
    """Makes the environments of a run's peers, and remembers which could not be made, so that none is tried twice."""

    def __init__(self) -> None:
        self._failed: dict[tuple[str, str], str] = {}

    def make(self, interpreter: Interpreter, lock: str, say: Callable[[Download], None]) -> None:
        """Make an environment unless it exists. say: receives the size of the download before that starts."""
        if environments.is_made(interpreter, lock=lock):
            return
        with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
            try:
                resolved = Path(folder) / "pylock.toml"
                environments.resolve(interpreter.path, lock, resolved)
                say(downloads.in_lock(resolved))
                environments.environment(interpreter, lock=lock, resolved=resolved)
            except NoEnvironment as error:
                self._failed[interpreter.name, lock] = str(error)

    def python(self, interpreter: Interpreter, lock: str) -> Path:
        """Path of the Python in an existing environment. Raises NoPeer."""
        if environments.is_made(interpreter, lock=lock):
            return environments.environment(interpreter, lock=lock)
        failure = self._failed.get((interpreter.name, lock))
        if failure:
            raise NoPeer(failure, REMEDY)
        raise NoPeer(f"its library has no environment for {interpreter.name} yet", ON_DEMAND)


ON_DEMAND = "Add `--peers` to `zoomgrad run`: it prints the size of the download, then makes the environment."
REMEDY = "Choose an interpreter that the library supports with --interpreters, or check the network. See docs/peers.md."
