"""One worker, one fresh process: starts it, limits it, and turns whatever happens into a reply.

The process boundary: tests put a fake in place of `Isolate` and script what a worker answers. What a real one answers
is checked here (`harness/run/replies.py`); how it is kept within its limits is the business of `harness/containment`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import psutil

from engines.asking import INHERITED
from harness.containment import Finished, Limits, run
from harness.machine.interpreters import ROOT
from harness.run.replies import REMEDY, WrongReply, check_times, read_bounded, read_reply
from harness.worker.job import Job, VouchJob
from harness.worker.lifeline import HARNESS, identity

Task = Literal["measure", "vouch"]

RUN = "ZOOMGRAD_RUN"
"""Environment variable: the id of the run that a process works for."""

KEPT = (
    *("LANG", "LC_ALL", "PATH", "ZOOMGRAD_CACHE", "ZOOMGRAD_DATA"),
    *INHERITED,  # so that compilers have it, too
)
"""All that a worker inherits of the environment: the rest would differ from machine to machine."""

PADDING = "ZOOMGRAD_PADDING"
MOST_PADDING = 4096
"""Bytes: a page. Where the stack begins moves with the environment's size (Mytkowicz et al., "Producing wrong data
without doing anything obviously wrong!", ASPLOS 2009)."""


@dataclass(frozen=True)
class Draw:
    """What is drawn anew for each process, so that no figure hangs on one draw; the same seed draws alike."""

    hash_seed: int = 0
    padding: int = 0
    """Bytes added to its environment."""


@dataclass(frozen=True)
class WorkerResult:
    """What came out of a worker: its reply dictionary, its wall time, and pyperf's file where it timed anything."""

    reply: dict[str, Any]
    seconds: float
    pyperf: bytes | None = None
    other_load: float = 0.0
    """Processors that others kept busy meanwhile, or that a hypervisor gave to others, on average."""


class Isolate(Protocol):
    """Runs one job in a process of its own; never raises for what a worker does. Raises OSError for a full disk."""

    def __call__(
        self, task: Task, python: Path, job: Job | VouchJob, *, limits: Limits, draw: Draw
    ) -> WorkerResult: ...


def isolate(
    task: Task,
    python: Path,
    job: Job | VouchJob,
    *,
    limits: Limits,
    draw: Draw,
    package: str = "harness.worker",
) -> WorkerResult:
    """Run the job's worker, that module of the package, under `python`; its crash or silence is a reply too."""
    environment = worker_environment(draw)
    # An engine may have put anything into the folder, or have removed it.
    with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
        reply_file = Path(folder) / "reply.json"
        job_file, pyperf_file = Path(folder) / "job.json", Path(folder) / "pyperf.json"
        job_file.write_text(json.dumps({**job, "reply_file": str(reply_file)}), encoding="utf-8")
        command = [str(python), "-m", f"{package}.{task}"]
        if task == "measure":
            job = cast(Job, job)
            command += ["--quiet", "--processes=1", f"--values={job['values']}", f"--warmups={job['warmups']}"]
            # The worker sets the loops itself, once it has prepared. pyperf's own worker would lose the environment.
            command += ["--loops=1", f"--inherit-environ={','.join(environment)}", f"--output={pyperf_file}"]
        start, others = time.perf_counter(), _others_cpu_seconds()
        finished = run([*command, str(job_file)], environment, folder, limits)
        seconds = time.perf_counter() - start
        # A tick of the system's clock may fall on the wrong side.
        other_load = max(0.0, _others_cpu_seconds() - others) / seconds
        reply, times = reply_of(reply_file, task, finished, limits, job["engine"]), None
        if task == "measure" and reply["status"] == "measured":
            reply, times = _with_times(reply, pyperf_file, cast(Job, job), finished.output)
        if reply["status"] != "measured":
            _refuse_full_disk(Path(folder))
    return WorkerResult(reply, seconds, times, other_load)


def _with_times(reply: dict[str, Any], file: Path, job: Job, output: str) -> tuple[dict[str, Any], bytes | None]:
    """The reply of a worker that measured, and pyperf's file; a failure where that is missing or wrong."""
    try:
        times = read_bounded(file)
        if times is None:
            raise WrongReply(f"pyperf kept no result: {output or 'it said nothing'}")
        check_times(times, job["values"])
    except WrongReply as wrong:
        return {"status": "failed", "reason": str(wrong)}, None
    return reply, times


def _refuse_full_disk(folder: Path) -> None:
    """Raise OSError where the disk has no space left: then a worker that failed says nothing of its engine.

    No record is written, so that the run measures the cell once it is resumed.
    """
    try:
        (folder / "space").write_bytes(bytes(1 << 16))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise


def _others_cpu_seconds() -> float:
    """Processor time that went to anybody but this process and those it has waited for, stolen time included."""
    everybody = psutil.cpu_times()
    idle = everybody.idle + getattr(everybody, "iowait", 0.0)
    # `user` and `nice` count what guests of this machine used already.
    guests = getattr(everybody, "guest", 0.0) + getattr(everybody, "guest_nice", 0.0)
    return float(sum(everybody) - idle - guests - sum(os.times()[:4]))


def worker_environment(draw: Draw) -> dict[str, str]:
    """All environment variables of a worker."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment.update(PYTHONPATH=str(ROOT), PYTHONHASHSEED=str(draw.hash_seed), PYTHONNOUSERSITE="1")
    # NumPy's threads spin for a while after it is imported, on a core that something else is timed on.
    environment.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    environment[PADDING] = "." * draw.padding
    environment[HARNESS] = identity()
    return environment


def reply_of(file: Path, task: str, finished: Finished, limits: Limits, engine: str) -> dict[str, Any]:
    """What the engine's worker wrote there, or the reason why that is nothing or can't be believed."""
    if finished.code is None:
        return limits.reply(finished.limit)
    try:
        reply = read_reply(file, task)
    except WrongReply as wrong:
        return {"status": "failed", "reason": f"{engine}: {wrong}", "remedy": REMEDY}
    if reply and reply["status"] == "measured":
        return reply
    if finished.limit:
        return limits.reply(finished.limit)
    if reply is None:
        reply = {
            "status": "failed",
            "reason": f"the worker {_how_it_ended(finished.code)}: {finished.output or 'it wrote nothing'}",
        }
    if reply.get("limit") == "memory" or (reply["status"] == "failed" and _NO_MEMORY.search(reply["reason"])):
        short = limits.reply("memory")
        return {**short, "reason": f"{short['reason']} ({reply['reason']})"}
    return reply


_NO_MEMORY = re.compile(r"\bMemoryError\b|(?i:out of memory)|virtual memory exhausted|std::bad_alloc")
"""What interpreters and compilers say where an allocation fails: most of them can't be asked."""


def _how_it_ended(code: int) -> str:
    if code >= 0:
        # pyperf's manager reports its worker's death by signal as an exit code of its own; the output has it.
        return f"ended with exit code {code} and no reply"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
