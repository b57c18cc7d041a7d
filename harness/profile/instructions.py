"""Instructions of a compiled step, counted by the processor if it offers a counter, else by callgrind.

Callgrind simulates every instruction, about fifty times slower, and counts only while the worker trains. It does not
support AVX-512, so the C is compiled for `count.PORTABLE`. The count is then the same on machines with other vector
units, as long as the compiler and libm are the same. Callgrind also separates compiled code from the Python around it,
whose count depends on the addresses of its objects and so varies, by a percent of a short step. The processor's counter
can't separate them. The two counters' figures are never compared with each other.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from engines.api import Unavailable
from engines.asking import NoAnswer, ask, one_line, which
from harness.profile.profile_session import NoProfile, Session
from harness.worker.job import CountJob
from harness.worker.profiling import count

STEPS = 50
REMEDY = "Install it, for example `apt install valgrind`."
WORKER = ("-m", "harness.worker.profiling.count")


def profile(
    session: Session, *, worker: Sequence[str] = WORKER, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Instructions per step. The session's folder keeps callgrind's files, which `callgrind_annotate` reads.

    worker: arguments that run the worker, if not this checkout's. environment: further variables of its environment.
    """
    tool, program = find()
    target = count.PORTABLE if program and platform.machine() in ("x86_64", "AMD64") else ""
    dump = session.folder / "callgrind.out"
    for stale in session.folder.glob(f"{dump.name}*"):
        stale.unlink()

    def job(reply_file: str) -> CountJob:
        return {
            "engine": session.cell.engine,
            "workload": session.cell.workload,
            "reply_file": reply_file,
            "counter": "callgrind" if program else "processor",
            "target": target,
            "steps": STEPS,
            "dump": str(dump),
        }

    under = (program, "--tool=callgrind", "--quiet", "--instr-atstart=no", f"--callgrind-out-file={dump}")
    python = str(session.python("worker"))
    command = [*(under if program else ()), python, *worker]
    # Without a cache, nothing is measured to choose the width of vectors: callgrind has no AVX-512, and no true times.
    surroundings = {**(environment or {}), "ZOOMGRAD_CACHE": "off"}
    reply = session.answer("count", job, lambda job: [*command, str(job)], environment=surroundings)
    fewer, more = reply["counts"]
    if more <= fewer:
        raise NoProfile("failed", f"{tool} saw no call of compiled code", "Report this with your version of valgrind.")
    return {
        "tool": tool,
        "target": target,
        "step_instructions": (more - fewer) / reply["steps"],
        **{name: reply[name] for name in ("steps", "compiler", "flags", "worker_seconds")},
    }


def find() -> tuple[str, str]:
    """Name and version of the counter, and its path, empty for the processor. Raises NoProfile if there is none."""
    try:
        count.Processor().close()
    except Unavailable as none:
        program = which("valgrind")
        if not program:
            raise NoProfile("skipped", f"{none.reason}, and valgrind is not installed", REMEDY) from None
        try:
            version = one_line(ask([program, "--version"], errors=False), 80)
        except NoAnswer as silent:
            raise NoProfile("skipped", f"{none.reason}, and {program} {silent}", REMEDY) from None
        return version.replace("valgrind-", "callgrind "), program
    return f"instructions:u on {platform.machine()}, Python's included", ""
