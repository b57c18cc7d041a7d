"""Environments of peers: big libraries, installed on demand only, each in an environment of its own.

A lock pins versions but no hashes, because PyTorch has several builds of a version, and users choose theirs by uv's own
variables.
"""

from __future__ import annotations

from pathlib import Path

from zoomgrad.harness.machine import environments
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.machine.interpreters import Interpreter

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

    def make(self, interpreter: Interpreter, lock: str) -> None:
        """Make an environment unless it exists."""
        try:
            environments.environment(interpreter, lock=lock)
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


ON_DEMAND = "Add `--peers` to `zoomgrad run`: it downloads the library, which may be gigabytes (docs/peers.md)."
REMEDY = "Choose an interpreter that the library supports with --interpreters, or check the network. See docs/peers.md."
