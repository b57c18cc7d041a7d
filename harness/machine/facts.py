"""Facts about this machine and checkout that a reader needs to interpret a figure."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import psutil

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.asking import NoAnswer, ask, which
from zoomgrad.engines.kernel import toolchains
from zoomgrad.results import comparability
from zoomgrad.results.printable import on_one_line

GIT_SECONDS = 120.0
GIT_BYTES = 64 << 20
COMMIT = re.compile("[0-9a-f]{7,64}")


def gather() -> dict[str, str]:
    """Collect processor, memory, system, load and compilers as text. Omits facts that the system does not report."""
    # Workers inherit the processors that this process may use.
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    facts = {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": f"{psutil.cpu_count(logical=False) or '?'} physical, {psutil.cpu_count()} logical",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "libc": " ".join(platform.libc_ver()),
        "frequency governor": " ".join(_lines(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))),
        "affinity": ", ".join(map(str, sorted(allowed))),
        "load at start": ", ".join(f"{load:.2f}" for load in os.getloadavg()),
    }
    facts |= {family: _compiler(family) for family in comparability.COMPILERS}
    # In the form that a run stores, because resuming compares the two.
    return {name: on_one_line(value) for name, value in facts.items() if value.strip()}


def _compiler(family: str) -> str:
    try:
        return str(toolchains.find(family)).removeprefix(f"{family} ")
    except Unavailable:
        return ""


def git(folder: Path, *arguments: str, errors: bool = True) -> str:
    """Output of a git command in that folder, with stderr if `errors`. Raises NoAnswer.

    Reads only: neither the repository's hooks nor its file watcher may run, as either may be any command.
    """
    program = which("git")
    if program is None:
        raise NoAnswer("is not installed")
    options = ("--no-optional-locks", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
    command = [program, *options, *arguments]
    return ask(command, seconds=GIT_SECONDS, most_bytes=GIT_BYTES, errors=errors, folder=folder)


def commit(folder: Path) -> str:
    """The checkout's commit, with `+` if files differ from it; empty outside a checkout."""
    try:
        head = git(folder, "rev-parse", "--short=12", "HEAD", errors=False).strip()
        changed = git(folder, "status", "--porcelain", errors=False).strip()
    except NoAnswer:
        return ""
    return f"{head}{'+' if changed else ''}" if COMMIT.fullmatch(head) else ""


def _processor() -> str:
    models = (line for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name"))
    return next((line.split(":", 1)[1].strip() for line in models), platform.processor())


def _lines(path: Path) -> list[str]:
    """Lines of a file; none if this system lacks the file."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
