"""perf on Linux: samples by C function of the interpreter, and whether it collected garbage or evaluated bytecode.

perf samples every few milliseconds of CPU time by the software clock, because many machines offer no hardware counters.
Builds of Python rarely keep frame pointers, so perf unwinds a copy of the stack (`--call-graph dwarf`). The worker
switches perf on and off through a pipe, so that its start is not sampled.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from zoomgrad.engines.asking import NoAnswer, ask, which
from zoomgrad.harness.profile.session import WORKER, Session
from zoomgrad.harness.run.replies import NoResult
from zoomgrad.results.stats.stacks import Frame, shares

HERTZ = 299
"""Sampling frequency, chosen so that samples do not coincide with the system's periodic work."""
STACK_BYTES = 8192
READING_SECONDS = 300.0
MOST_BYTES = 1 << 30
PROBE_SECONDS = 20.0
FEWEST = 50
"""Least number of samples for meaningful shares."""

REMEDY = "Install it, for example `apt install linux-perf`."

_FRAME = re.compile(r"\s+[0-9a-f]+ (?P<symbol>.+?) \((?P<object>.*)\)")


def profile(session: Session) -> dict[str, Any]:
    """Shares of samples by symbol and by group."""
    program = find()
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as name:
        folder = Path(name)
        control, data = folder / "control", folder / "perf.data"
        os.mkfifo(control, 0o600)
        command = [
            *(program, "record", "--quiet", "--event=cpu-clock", f"--freq={HERTZ}"),
            *(f"--call-graph=dwarf,{STACK_BYTES}", "--no-buildid", "--no-buildid-cache", f"--output={data}"),
            *("--delay=-1", f"--control=fifo:{control}", "--", session.python(), *WORKER),
        ]
        fields = session.work(command, ZOOMGRAD_PERF_CONTROL=str(control))
        text = _read([program, "script", "--no-inline", "--fields=ip,sym,dso", f"--input={data}"], folder)
        version = _read([program, "version"], folder).strip().replace(" version", "")
    stacks = list(samples(text.splitlines()))
    if len(stacks) < FEWEST:
        raise NoResult("failed", f"perf took only {len(stacks)} samples", "Give it longer with --seconds.")
    return {**fields, "tool": version, **shares(stacks)}


def samples(lines: Iterable[str]) -> Iterator[list[Frame]]:
    """Parse the output of `perf script` into stacks, innermost frame first. An empty line ends a sample."""
    stack: list[Frame] = []
    for line in (*lines, ""):
        match = _FRAME.fullmatch(line)
        if match:
            stack.append(Frame(match["symbol"], Path(match["object"].removesuffix(" (deleted)")).name))
        elif stack:
            yield stack
            stack = []


def find() -> str:
    """Path of perf. Raises NoResult if it is missing, or if the system does not permit it."""
    if sys.platform != "linux":
        raise NoResult("skipped", "perf exists only on Linux", "Profile there.")
    program = which("perf")
    if not program:
        raise NoResult("skipped", "perf is not installed", REMEDY)
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
        options = ("--quiet", "--event=cpu-clock", "--no-buildid", "--no-buildid-cache", "--output=probe.data")
        command = [program, "record", *options, "--", "true"]
        try:
            ask(command, seconds=PROBE_SECONDS, folder=Path(folder))
        except NoAnswer as none:
            remedy = "As root: `sysctl kernel.perf_event_paranoid=1`."
            raise NoResult("skipped", f"perf is not permitted to profile: it {none}", remedy) from None
    return program


def _read(command: list[str], folder: Path) -> str:
    """Output of a perf command. Raises NoResult."""
    environment = {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(folder)}  # perf may cache objects in HOME
    try:
        return ask(
            command,
            seconds=READING_SECONDS,
            most_bytes=MOST_BYTES,
            errors=False,
            folder=folder,
            environment=environment,
        )
    except NoAnswer as none:
        raise NoResult("timed-out" if none.limit == "time" else "failed", f"perf {command[1]} {none}") from None
