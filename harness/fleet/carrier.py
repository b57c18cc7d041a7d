"""The task that dask carries to a host: start the host process, and send its lines home one by one.

It runs in a thread of a dask worker, which does nothing else. The host process must see no variable that dask exports,
and must end when the client has gone.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import IO

from harness.machine.project import importable
from harness.worker.lifeline import HARNESS, identity

FOREIGN = ("DASK_", "MALLOC_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Starts of the names of variables that dask and its nanny export."""
WATCHING_SECONDS = 2.0
TAIL_CHARACTERS = 600


class Failed(Exception):
    """The host could not do what was asked. The text says why."""


def clean_environment() -> dict[str, str]:
    """The environment of a host process: that of the dask worker, without what dask has added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    paths = [str(importable()), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), HARNESS: identity()}


def carry(request: str, send: Callable[[str], None], wanted: Callable[[], bool]) -> str:
    """Run a host process with the request and pass each of its lines to `send`. Return how it failed, or nothing.

    wanted: whether somebody still waits for the answer; asked every few seconds.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.fleet.host"],
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        over = threading.Event()
        threading.Thread(target=_watch, args=(process, over, wanted), daemon=True).start()
        try:
            assert process.stdin and process.stdout
            process.stdin.write(request + "\n")
            process.stdin.flush()  # keep it open: the host process stops at its end
            for line in process.stdout:
                send(line)
            code = process.wait()
        except BrokenPipeError:
            code = process.wait()
        finally:
            over.set()
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    _close(pipe)
        return "" if code == 0 else f"the host process ended with code {code}: {_tail(errors)}"


def _close(pipe: IO[str]) -> None:
    with contextlib.suppress(OSError):
        pipe.close()


def _watch(process: subprocess.Popen[str], over: threading.Event, wanted: Callable[[], bool]) -> None:
    while not over.wait(WATCHING_SECONDS):
        if not wanted():
            process.kill()
            return


def _tail(file: IO[str]) -> str:
    file.seek(0)
    lines = file.read().strip().splitlines()
    return " | ".join(lines[-3:])[-TAIL_CHARACTERS:] or "no output"


def carry_on_dask(task: str, request: str, topic: str) -> None:
    """Carry a request inside a dask worker. Events of the topic bring the lines to the client. Raises Failed."""
    from distributed import get_worker  # only inside a dask worker

    from harness.fleet.quiet import noise

    if noise():
        raise Failed(
            f"its dask worker would disturb timings: {'; '.join(noise())}\n"
            "  Start it with `python -m harness.fleet.worker ADDRESS`."
        )
    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        found = worker.state.tasks.get(key)
        return found is not None and found.state == "executing"

    failure = carry(request, lambda line: worker.log_event(topic, {"task": task, "line": line}), wanted)
    if failure:
        raise Failed(failure)
