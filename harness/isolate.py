"""One worker, one fresh process: starts it, limits it, and turns whatever happens into an outcome.

The process boundary: tests put a fake in place of `Isolate` and script what a worker answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import psutil

from harness.interpreters import ROOT
from harness.worker.job import Job, VouchJob

Task = Literal["measure", "vouch"]

KEPT = (
    *("HOME", "LANG", "LC_ALL", "PATH", "SYSTEMROOT", "TMPDIR"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),  # what a shared build of Python may need to start at all
    *("XDG_CACHE_HOME", "ZOOMGRAD_CACHE", "ZOOMGRAD_DATA"),
)
"""All that a worker inherits of the environment: the rest would differ from machine to machine."""

PADDING = "ZOOMGRAD_PADDING"
MOST_PADDING = 4096
"""Bytes: a page. Where the stack begins moves with the environment's size (Mytkowicz et al., "Producing wrong data
without doing anything obviously wrong!", ASPLOS 2009)."""

TAIL_CHARACTERS = 1500


@dataclass(frozen=True)
class Draw:
    """What is drawn anew for each process, so that no figure hangs on one draw; the same seed draws alike."""

    hash_seed: int = 0
    padding: int = 0
    """Bytes added to its environment."""


@dataclass(frozen=True)
class Answer:
    """What came out of a worker: its outcome dictionary, its wall time, and pyperf's file where it timed anything."""

    outcome: dict[str, Any]
    seconds: float
    pyperf: bytes | None = None
    other_load: float = 0.0
    """Processors that others kept busy meanwhile, or that a hypervisor gave to others, on average."""


class Isolate(Protocol):
    """Runs one job in a process of its own; never raises for what a worker does."""

    def __call__(
        self, task: Task, python: Path, job: Job | VouchJob, *, timeout_seconds: float, draw: Draw
    ) -> Answer: ...


def isolate(
    task: Task,
    python: Path,
    job: Job | VouchJob,
    *,
    timeout_seconds: float,
    draw: Draw,
    package: str = "harness.worker",
) -> Answer:
    """Run the job's worker, that module of the package, under `python`; its crash or silence is an outcome too."""
    environment = worker_environment(draw)
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
        outcome_file = Path(folder) / "outcome.json"
        job_file, pyperf_file = Path(folder) / "job.json", Path(folder) / "pyperf.json"
        job_file.write_text(json.dumps({**job, "outcome_file": str(outcome_file)}), encoding="utf-8")
        command = [str(python), "-m", f"{package}.{task}"]
        if task == "measure":
            job = cast(Job, job)
            command += ["--quiet", "--processes=1", f"--values={job['values']}", f"--warmups={job['warmups']}"]
            # The worker sets the loops itself, once it has prepared. pyperf's own worker would lose the environment.
            command += ["--loops=1", f"--inherit-environ={','.join(environment)}", f"--output={pyperf_file}"]
        start, others = time.perf_counter(), _others_cpu_seconds()
        code, output = run([*command, str(job_file)], environment, folder, timeout_seconds)
        seconds = time.perf_counter() - start
        # A tick of the system's clock may fall on the wrong side.
        other_load = max(0.0, _others_cpu_seconds() - others) / seconds
        outcome = outcome_of(outcome_file, code, output, timeout_seconds)
        pyperf = pyperf_file.read_bytes() if pyperf_file.exists() else None
    if task == "measure" and outcome["status"] == "measured" and pyperf is None:
        outcome = {"status": "failed", "reason": f"pyperf kept no result: {output or 'it said nothing'}"}
    return Answer(outcome, seconds, pyperf, other_load)


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
    return environment


def run(command: list[str], environment: dict[str, str], folder: str, timeout_seconds: float) -> tuple[int | None, str]:
    """Run in a session of its own, in that folder, and end all that it started.

    Gives the exit code, None after a timeout, and the end of what the process wrote.
    """
    with (Path(folder) / "output.txt").open("w+b") as output:
        process = subprocess.Popen(  # noqa: S603  (a list of arguments, none of them read by a shell)
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A group of its own: Ctrl-C reaches us alone, and pyperf's worker ends with its manager.
            start_new_session=True,
        )
        code: int | None
        try:
            code = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end_group(process)
        output.seek(0)
        text = output.read().decode(errors="replace").strip()
    return code, text if len(text) <= TAIL_CHARACTERS else f"…{text[-TAIL_CHARACTERS:]}"


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _end_session(process.pid)


def _end_session(leader: int) -> None:
    """What the worker started in groups of their own: a compiler that outlived it would load the next one's timing."""
    for pid in psutil.pids() if hasattr(os, "getsid") else ():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


def outcome_of(file: Path, code: int | None, output: str, timeout_seconds: float) -> dict[str, Any]:
    """What a worker wrote there, or the reason why it wrote nothing."""
    if code is None:
        return {
            "status": "timed-out",
            "reason": f"took longer than {timeout_seconds:g} s",
            "remedy": "Give it longer with --timeout, or leave it out.",
        }
    if file.exists():
        outcome: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return outcome
    return {"status": "failed", "reason": f"the worker {_how_it_ended(code)}: {output or 'it wrote nothing'}"}


def _how_it_ended(code: int) -> str:
    if code >= 0:
        # pyperf's manager reports its worker's death by signal as an exit code of its own; the output tells.
        return f"ended with exit code {code} and no outcome"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"
