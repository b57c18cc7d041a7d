"""The task that dask carries to a host: start the host process, and return what it answers.

It runs in a thread of a dask worker, which does nothing else. The host process sees no variable that dask exports, and
ends when the dask worker or the client has gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zoomgrad.harness.fleet.host import ANSWER, REQUEST, Request
from zoomgrad.harness.machine.project import importable, worker_command
from zoomgrad.harness.worker.lifeline import HARNESS
from zoomgrad.results.record import Run

FOREIGN = ("DASK_", "MALLOC_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Starts of the names of variables that dask and its nanny export."""
TALKING = ("heartbeat", "keep-alive")
"""What a dask worker must go on doing while its host measures. It samples its threads a hundred times a second."""
WATCHING_SECONDS = 2.0
TAIL_CHARACTERS = 600


class Failed(Exception):
    """The host process failed. The text says why."""


def carry(run: str, block: int, shares_machine: bool) -> tuple[str, str]:
    """The worker's address and its host's answer. Runs inside a dask worker. Raises Failed."""
    from distributed import get_worker  # only inside a dask worker

    worker = get_worker()
    key = worker.get_current_task()
    worker.loop.add_callback(_be_quiet, worker)

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing"

    slot = str(worker.name) if shares_machine else ""
    request = Request(run=Run.model_validate_json(run), block=block, slot=slot)
    return worker.address, run_host(request.model_dump_json(), is_wanted)


def run_host(request: str, is_wanted: Callable[[], bool]) -> str:
    """Run a host process with the request, and return its answer. Raises Failed.

    is_wanted: whether somebody still waits for the answer; asked every few seconds.
    """
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as name:
        folder = Path(name)
        (folder / REQUEST).write_text(request, encoding="utf-8")
        with (folder / "output").open("w+b") as output:
            process = subprocess.Popen(  # noqa: S603  (a list of arguments)
                worker_command(Path(sys.executable), "zoomgrad.harness.fleet.host", name),
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            while process.poll() is None:
                if not is_wanted():
                    process.kill()
                time.sleep(WATCHING_SECONDS)
        if process.returncode:
            lines = (folder / "output").read_text(errors="replace").strip().splitlines()
            tail = " | ".join(lines[-3:])[-TAIL_CHARACTERS:] or "no output"
            raise Failed(f"the host process ended with code {process.returncode}: {tail}")
        return (folder / ANSWER).read_text(encoding="utf-8")


def clean_environment() -> dict[str, str]:
    """The environment of a host process: that of the dask worker, without what dask has added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    paths = [str(importable()), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), HARNESS: str(os.getpid())}


def _be_quiet(worker: Any) -> None:
    """Stop what a dask worker does many times a second."""
    for name, callback in worker.periodic_callbacks.items():
        if name not in TALKING:
            callback.stop()
