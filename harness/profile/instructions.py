"""Instructions of a compiled step: by the processor's own counter where it offers one, else by callgrind.

Callgrind runs every instruction itself, some fifty times as slow, and counts only while the worker trains. It knows no
AVX-512: for it the C is compiled for `count.PORTABLE`, which makes the count the same on machines with other vectors,
as long as the compiler and libm are the same. It also tells compiled code from the Python around it, which moves by a
percent of a short step with the addresses of its objects; the processor's counter can't. The figures of the two are
never set against each other.
"""

from __future__ import annotations

import platform
from typing import Any

from engines.api import Unavailable
from engines.asking import NoAnswer, ask, one_line, which
from harness.profile.profile_session import NoProfile, Session
from harness.worker.job import CountJob
from harness.worker.profiling import count

STEPS = 50
REMEDY = "Install it, for example `apt install valgrind`."
WORKER = ("-m", "harness.worker.profiling.count")


def profile(session: Session) -> dict[str, Any]:
    """Instructions a step; its folder keeps callgrind's own files, which `callgrind_annotate` reads."""
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
    reply = session.answer("count", job, lambda job: [*(under if program else ()), python, *WORKER, str(job)])
    fewer, more = reply["counts"]
    if more <= fewer:
        raise NoProfile("failed", f"{tool} saw no call of compiled code", "Report it, with the version of valgrind.")
    return {
        "tool": tool,
        "target": target,
        "step_instructions": (more - fewer) / reply["steps"],
        **{name: reply[name] for name in ("steps", "compiler", "flags", "worker_seconds")},
    }


def find() -> tuple[str, str]:
    """Name and version of what counts, and its path; empty for the processor. Raises NoProfile where nothing does."""
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
