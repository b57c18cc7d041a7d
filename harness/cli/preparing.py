"""Prerequisites of a worker outside a run: its data and its Python."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from zoomgrad import datasets
from zoomgrad.datasets import fetch, mnist
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.harness import workloads
from zoomgrad.harness.cli.app import INTERRUPTED
from zoomgrad.harness.cli.console import complain, out
from zoomgrad.harness.machine import environments, interpreters, named
from zoomgrad.harness.machine.project import with_project, worker_command


def fetch_data(names: Iterable[str]) -> None:
    """Download MNIST to the cache if a workload needs it; no other data is downloaded. Workers report any failure."""
    if any(workloads.load(name).reader is mnist.load for name in names):
        with out.status("looking for MNIST"), contextlib.suppress(datasets.Unavailable, CorruptData):
            fetch.fetch_mnist()


def python_of(name: Optional[str]) -> Path:
    """Path of the Python for a worker: the named interpreter's environment, or the Python that runs this process."""
    if name is None:
        return Path(sys.executable)
    return environments.environment(named.chosen_one(name, interpreters.discover()))


def run_worker(interpreter: Optional[str], module: str, *arguments: str) -> int:
    """Run one of our modules in a worker that shares this terminal, and return its exit code, as a shell reports it."""
    try:
        command = worker_command(python_of(interpreter), module, *arguments)
        code = subprocess.run(command, env=with_project(os.environ), check=False).returncode  # noqa: S603  (a list)
    except KeyboardInterrupt:
        return INTERRUPTED
    if code < 0:
        complain(f"the worker was killed by signal {-code}\n  Use fewer weights, or free memory.")
    return 128 - code if code < 0 else code
