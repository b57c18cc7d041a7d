"""The task that dask carries to a host: start the host process, and return what it answers.

It runs in a thread of a dask worker, which does nothing else. The host process sees no variable that dask exports, and
ends when the client has gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import IO, Any

from zoomgrad.harness.machine.project import importable
from zoomgrad.harness.worker.lifeline import HARNESS, identity

FOREIGN = ("DASK_", "MALLOC_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Starts of the names of variables that dask and its nanny export."""
TALKING = ("heartbeat", "keep-alive")
"""What a dask worker must go on doing while its host measures. It samples its threads a hundred times a second."""
WATCHING_SECONDS = 2.0
TAIL_CHARACTERS = 600


class Failed(Exception):
    """The host could not do what was asked. The text says why."""


def clean_environment() -> dict[str, str]:
    """The environment of a host process: that of the dask worker, without what dask has added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    paths = [str(importable()), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), HARNESS: identity()}


def run_host(request: str, is_wanted: Callable[[], bool]) -> str:
    """Run a host process with the request, and return its answer. Raises Failed.

    is_wanted: whether somebody still waits for the answer; asked every few seconds.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "zoomgrad.harness.fleet.host"],
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        is_over = threading.Event()
        threading.Thread(target=_watch, args=(process, is_over, is_wanted), daemon=True).start()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()  # keep it open: the host process stops at its end
            answer = process.stdout.read()
        except BrokenPipeError:
            answer = ""
        finally:
            is_over.set()
            code = process.wait()
            process.stdout.close()
            with contextlib.suppress(OSError):  # the request may not have been read
                process.stdin.close()
        if code:
            raise Failed(f"the host process ended with code {code}: {_tail(errors)}")
        return answer


def _watch(process: subprocess.Popen[str], is_over: threading.Event, is_wanted: Callable[[], bool]) -> None:
    while not is_over.wait(WATCHING_SECONDS):
        if not is_wanted():
            process.kill()
            return


def _tail(file: IO[str]) -> str:
    file.seek(0)
    lines = file.read().strip().splitlines()
    return " | ".join(lines[-3:])[-TAIL_CHARACTERS:] or "no output"


def carry(request: dict[str, Any], shares_machine: bool) -> tuple[str, str]:
    """The worker's address and its host's answer. Runs inside a dask worker. Raises Failed."""
    from distributed import get_worker  # only inside a dask worker

    worker = get_worker()
    key = worker.get_current_task()
    worker.loop.add_callback(_be_quiet, worker)

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing"

    slot = str(worker.name) if shares_machine else ""
    return worker.address, run_host(json.dumps({**request, "slot": slot}), is_wanted)


def _be_quiet(worker: Any) -> None:
    """Stop what a dask worker does many times a second."""
    for name, callback in worker.periodic_callbacks.items():
        if name not in TALKING:
            callback.stop()
