"""What any worker needs: its data, its Python, and this project on its path."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

import datasets
from datasets import fetch, mnist
from datasets.idx import CorruptData
from harness import workloads
from harness.cli.app import out
from harness.machine import environments, interpreters
from harness.worker.lifeline import HARNESS, identity


def fetch_data(names: Iterable[str]) -> None:
    """Have MNIST in the cache where it is wanted: it is all that is ever downloaded. A worker tells what is wrong."""
    if any(workloads.load(name).reader is mnist.load for name in names):
        with out.status("looking for MNIST"), contextlib.suppress(datasets.Unavailable, CorruptData):
            fetch.fetch_mnist()


def python_of(name: Optional[str]) -> Path:
    """The Python to run a worker with: the named interpreter's environment, else the one that runs this."""
    if name is None:
        return Path(sys.executable)
    return environments.environment(interpreters.choose(name, interpreters.discover()))


def with_project() -> dict[str, str]:
    """The caller's environment, where a worker also finds this project, whichever interpreter it runs on."""
    paths = [str(interpreters.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), HARNESS: identity()}
