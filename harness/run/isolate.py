"""Job -> reply: start one worker in a fresh process within limits, and turn any outcome into a reply.

This is the process boundary: tests replace `Isolate` with a fake that scripts a worker's answers. Real answers are
checked by `harness/run/replies.py`. `harness/containment.py` enforces the limits.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import psutil

from zoomgrad.engines import discovery
from zoomgrad.engines.asking import INHERITED
from zoomgrad.harness.containment import Finished, Run, reply_at, run
from zoomgrad.harness.machine.project import importable
from zoomgrad.harness.run.replies import REMEDY, WrongReply, read_reply, times_of
from zoomgrad.harness.worker.job import BaseJob
from zoomgrad.harness.worker.lifeline import HARNESS
from zoomgrad.results.record import Settings

Task = Literal["measure", "vouch"]

KEPT = (
    *("LANG", "LC_ALL", "PATH", "ZOOMGRAD_CACHE", "ZOOMGRAD_DATA"),
    *("ZOOMGRAD_TCC", "ZOOMGRAD_GCC", "ZOOMGRAD_CLANG", "ZOOMGRAD_VECTORS"),
    *INHERITED,  # compilers need these
)
"""Environment variables that a worker inherits. The others would differ between machines."""

PADDING = "ZOOMGRAD_PADDING"
MOST_PADDING = 4096
"""A page, in bytes. The size of the environment shifts the start of the stack, which affects timings (Mytkowicz et al.,
"Producing wrong data without doing anything obviously wrong!", ASPLOS 2009)."""


@dataclass(frozen=True)
class WorkerResult:
    """A worker's reply, its wall time, and pyperf's file if it timed anything."""

    reply: dict[str, Any]
    seconds: float
    pyperf: bytes | None = None
    other_load: float = 0.0
    """Average number of processors that other processes kept busy meanwhile, including time stolen by a hypervisor."""


class Isolate(Protocol):
    """Run one job in a separate process. A worker's failure becomes a reply."""

    def __call__(self, task: Task, python: Path, job: BaseJob, *, settings: Settings, draw: int) -> WorkerResult: ...


def isolate(
    task: Task, python: Path, job: BaseJob, *, settings: Settings, draw: int, package: str = "zoomgrad.harness.worker"
) -> WorkerResult:
    """Run the module `package`.`task` under `python` with the job. A crash or a missing reply becomes a reply too.

    draw: seed of the process's hash seed and of its environment's size, so that no figure depends on a single draw.
    """
    environment = worker_environment(draw)
    # An engine may have put anything into the folder, or removed the folder.
    with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
        pyperf_file = Path(folder) / "pyperf.json"
        command = [str(python), "-m", f"{package}.{task}"]
        timed: Any = job if task == "measure" else None
        if timed:
            command += ["--quiet", "--processes=1", f"--values={timed['values']}", f"--warmups={timed['warmups']}"]
            # The worker sets the loops itself after preparing. pyperf's worker inherits only the variables named here.
            inherited = ",".join([*environment, "PYTHON_JIT"])  # which an interpreter's own script may have set
            command += ["--loops=1", f"--inherit-environ={inherited}", f"--output={pyperf_file}"]
        others = _others_cpu_seconds()
        reply, seconds, output = work(task, command, job, environment, folder, settings)
        # The system's clock ticks may make the difference slightly negative.
        other_load, times = max(0.0, _others_cpu_seconds() - others) / seconds, None
        if timed and reply["status"] == "measured":
            try:
                times = times_of(pyperf_file, timed["values"], output)
            except WrongReply as wrong:
                reply = {"status": "failed", "reason": str(wrong)}
    return WorkerResult(reply, seconds, times, other_load)


def work(
    task: str,
    command: Sequence[str],
    job: BaseJob,
    environment: dict[str, str],
    folder: str,
    settings: Settings,
    run: Run = run,
) -> tuple[dict[str, Any], float, str]:
    """Run a worker's command with the job's file in that folder. Return its reply, seconds and end of output."""
    reply_file, job_file = Path(folder) / "reply.json", Path(folder) / "job.json"
    job_file.write_text(json.dumps({**job, "reply_file": str(reply_file)}), encoding="utf-8")
    start = time.perf_counter()
    finished = run([*command, str(job_file)], environment, folder, settings)
    seconds = time.perf_counter() - start
    return _reply_of(reply_file, task, finished, settings, job["engine"]), seconds, finished.output


def _others_cpu_seconds() -> float:
    """Processor time of all processes except this one and its reaped children, including stolen time."""
    everybody = psutil.cpu_times()
    idle = everybody.idle + getattr(everybody, "iowait", 0.0)
    # `user` and `nice` already include the time of guests.
    guests = getattr(everybody, "guest", 0.0) + getattr(everybody, "guest_nice", 0.0)
    return float(sum(everybody) - idle - guests - sum(os.times()[:4]))


def worker_environment(draw: int) -> dict[str, str]:
    """Return all environment variables of a worker. draw: as for `isolate`."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment.update(discovery.variables())
    environment.update(PYTHONPATH=str(importable()), PYTHONHASHSEED=str(draw), PYTHONNOUSERSITE="1")
    # NumPy's threads spin for a while after import, and would disturb the timing on another core.
    environment.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    environment[PADDING] = "." * random.Random(draw).randrange(MOST_PADDING)
    environment[HARNESS] = str(os.getpid())
    return environment


def _reply_of(file: Path, task: str, finished: Finished, settings: Settings, engine: str) -> dict[str, Any]:
    """The reply in the worker's file, or a failed reply with the reason if it is missing, invalid or over a limit."""
    if finished.code is None:
        return reply_at(finished.limit, settings)
    try:
        reply = read_reply(file, task)
    except WrongReply as wrong:
        return {"status": "failed", "reason": f"{engine}: {wrong}", "remedy": REMEDY}
    if reply and reply["status"] == "measured":
        return reply
    if reply is None:
        reply = {
            "status": "failed",
            "reason": f"the worker {_how_it_ended(finished.code)}: {finished.output or 'no output'}",
        }
    if reply.get("limit") == "memory" or (reply["status"] == "failed" and _NO_MEMORY.search(reply["reason"])):
        short = reply_at("memory", settings)
        return {**short, "reason": f"{short['reason']} ({reply['reason']})"}
    return reply


_NO_MEMORY = re.compile(r"\bMemoryError\b|(?i:out of memory)|virtual memory exhausted|std::bad_alloc")
"""Messages of interpreters and compilers about a failed allocation. Most of them give no other sign."""


def _how_it_ended(code: int) -> str:
    if code >= 0:
        # If a signal killed pyperf's worker, its manager exits with an ordinary code, and the output names the signal.
        return f"ended with exit code {code} and no reply"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
