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

GIT_SECONDS = 20.0
GIT_BYTES = 64 << 20
COMMIT = re.compile("[0-9a-f]{7,64}")


def gather() -> dict[str, str]:
    """Collect processor, memory, system, load and compilers as text. Omits facts that the system does not report."""
    facts = {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": f"{psutil.cpu_count(logical=False) or '?'} physical, {psutil.cpu_count()} logical",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "libc": " ".join(platform.libc_ver()),
        "frequency governor": _first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "affinity": _affinity(),
        "load at start": ", ".join(f"{load:.2f}" for load in os.getloadavg()) if hasattr(os, "getloadavg") else "",
    }
    facts |= {family: _compiler(family) for family in comparability.COMPILERS}
    # In the form that a run stores, because resuming compares the two.
    return {name: on_one_line(value) for name, value in facts.items() if value.strip()}


def _compiler(family: str) -> str:
    try:
        return str(toolchains.find(family)).removeprefix(f"{family} ")
    except Unavailable:
        return ""


def commit(folder: Path) -> str:
    """The checkout's commit, with `+` if files differ from it; empty outside a checkout."""

    program = which("git")
    if program is None:
        return ""
    # Reading needs neither the repository's lock nor its file watcher, which may be any command.
    options = [program, "--no-optional-locks", "-c", "core.fsmonitor=false"]

    def git(*arguments: str) -> str:
        return ask([*options, *arguments], seconds=GIT_SECONDS, most_bytes=GIT_BYTES, errors=False, folder=folder)

    try:
        head = git("rev-parse", "--short=12", "HEAD").strip()
        return f"{head}{'+' if git('status', '--porcelain').strip() else ''}" if COMMIT.fullmatch(head) else ""
    except NoAnswer:
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _affinity() -> str:
    """The processors that this process may use; workers inherit them."""
    if not hasattr(os, "sched_getaffinity"):
        return ""
    return ", ".join(str(processor) for processor in sorted(os.sched_getaffinity(0)))


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return ""
