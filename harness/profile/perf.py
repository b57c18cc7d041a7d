"""perf, on Linux: samples by function of the interpreter, with Python's own functions on their stacks from 3.13 on.

A sample each few milliseconds of CPU time, by the software clock: hardware counters are not offered everywhere. Builds
of Python rarely keep frame pointers, so that stacks are unwound from a copy of the stack (`--call-graph dwarf`), and
Python's frames show only where its trampoline describes itself to the unwinder (`-X perf_jit`). The worker switches
perf on and off through a pipe: its start is not sampled.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from engines.asking import NoAnswer, ask, which
from harness.profile.profile_session import WORKER, NoProfile, Session, common
from harness.profile.symbols import Frame, group_of
from results.profile import Symbol

HERTZ = 299
"""No divisor of what runs in the system's own rhythm."""
STACK_BYTES = 8192
SYMBOLS = 200
"""Kept of a profile: with copies of a function apart, far more than have 0.5 %, where the published table is cut."""
READING_SECONDS = 300.0
PROBE_SECONDS = 20.0
FEWEST = 50
"""Samples below which shares say nothing."""

REMEDY = "Install it, for example `apt install linux-perf`."


def profile(session: Session) -> dict[str, Any]:
    """Shares of samples by symbol and by group; keeps the stacks."""
    program = find()
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as name:
        folder = Path(name)
        control = folder / "control"
        os.mkfifo(control, 0o600)
        data = folder / "perf.data"
        python = [str(session.python("worker")), *_trampoline(session)]
        reply = session.work(
            lambda job: [
                *(program, "record", "--quiet", "--event=cpu-clock", f"--freq={HERTZ}", "--clockid=monotonic"),
                *(f"--call-graph=dwarf,{STACK_BYTES}", "--no-buildid", "--no-buildid-cache", f"--output={data}"),
                *("--delay=-1", f"--control=fifo:{control}", "--", *python, *WORKER, str(job)),
            ],
            environment={"ZOOMGRAD_PERF_CONTROL": str(control)},
        )
        with _without_litter(reply["pid"]):
            if python[-1] == "perf_jit":
                injected = folder / "injected.data"
                _read([program, "inject", "--jit", f"--input={data}", f"--output={injected}"], folder)
                data = injected if injected.exists() else data
            text = _read([program, "script", "--no-inline", "--fields=ip,sym,dso", f"--input={data}"], folder)
    stacks = list(samples(text.splitlines()))
    if len(stacks) < FEWEST:
        raise NoProfile("failed", f"perf took {len(stacks)} samples", "Give it longer with --seconds.")
    _keep_stacks(stacks, session.folder / "perf.folded")
    version = _read([program, "version"], session.folder).strip().replace(" version", "")
    return {**common(reply), "tool": version, **shares(stacks)}


def shares(stacks: Sequence[Sequence[Frame]]) -> dict[str, Any]:
    """Of all samples: by group, and by innermost function."""
    found = Counter((stack[0], group_of(stack)) for stack in stacks)
    groups: Counter[str] = Counter()
    for (_, group), count in found.items():
        groups[group] += count
    return {
        "samples": len(stacks),
        "groups": {group: count / len(stacks) for group, count in groups.most_common()},
        "symbols": tuple(
            Symbol(name=frame.symbol, object=frame.object, group=group, share=count / len(stacks))
            for (frame, group), count in found.most_common(SYMBOLS)
        ),
    }


def samples(lines: Iterable[str]) -> Iterator[list[Frame]]:
    """`perf script`'s text -> stacks, innermost frame first; an empty line ends a sample."""
    stack: list[Frame] = []
    for line in (*lines, ""):
        match = _FRAME.fullmatch(line)
        if match:
            stack.append(_frame(match["symbol"], match["object"]))
        elif stack:
            yield stack
            stack = []


_FRAME = re.compile(r"\s+[0-9a-f]+ (?P<symbol>.+?) \((?P<object>.*)\)")


def _frame(symbol: str, path: str) -> Frame:
    """`py::Value.f:/a/b.py` lies in the file, not in the object that was made for perf to find it."""
    if symbol.startswith("py::"):
        function, _, file = symbol.removeprefix("py::").rpartition(":")
        return Frame(f"py::{function}", Path(file).name)
    return Frame(symbol, Path(path.removesuffix(" (deleted)")).name)


def _keep_stacks(stacks: Iterable[Sequence[Frame]], file: Path) -> None:
    """Folded, outermost first: Python's functions from the work on, then the C that the innermost of them called.

    What the interpreter does between two of Python's functions is the same each time.
    """
    counts: Counter[str] = Counter()
    for stack in stacks:
        python = [n for n, frame in enumerate(stack) if frame.symbol.startswith("py::")]
        work = next((n for n in python if stack[n].symbol == "py::exercise"), len(stack))
        shown = [n for n in range(work) if not python or n < python[0] or n in python]
        counts[";".join(_name(stack[n]) for n in reversed(shown)) or "exercise"] += 1
    file.write_text("".join(f"{stack} {count}\n" for stack, count in sorted(counts.items())), encoding="utf-8")


def _name(frame: Frame) -> str:
    name = frame.symbol.replace(";", ",")
    return f"{name.removeprefix('py::')} ({frame.object})" if name.startswith("py::") else name


def _trampoline(session: Session) -> tuple[str, ...]:
    """What has Python's own functions on the stack: 3.13's option tells an unwinder how to go on, 3.12's does not."""
    if session.interpreter.implementation != "cpython" or session.interpreter.minor < (3, 12):
        return ()
    return ("-X", "perf_jit") if session.interpreter.minor >= (3, 13) else ("-X", "perf")


def find() -> str:
    """Its path. Raises NoProfile where it is missing, or the system refuses it."""
    if sys.platform != "linux":
        raise NoProfile("skipped", "perf is Linux's own", "Profile there.")
    program = which("perf")
    if not program:
        raise NoProfile("skipped", "perf is not installed", REMEDY)
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
        options = ("--quiet", "--event=cpu-clock", "--no-buildid", "--no-buildid-cache", "--output=probe.data")
        command = [program, "record", *options, "--", "true"]
        try:
            ask(command, seconds=PROBE_SECONDS, folder=Path(folder))
        except NoAnswer as none:
            remedy = "As root: `sysctl kernel.perf_event_paranoid=1`."
            raise NoProfile("skipped", f"perf may not profile: it {none}", remedy) from None
    return program


def _read(command: list[str], folder: Path) -> str:
    """What perf writes. Raises NoProfile where it takes too long."""
    environment = {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(folder)}  # a cache of objects would go to HOME
    try:
        result = subprocess.run(  # noqa: S603  (a list of arguments)
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=READING_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise NoProfile("timed-out", f"perf {command[1]} took longer than {READING_SECONDS:g} s") from None
    return result.stdout


@contextlib.contextmanager
def _without_litter(pid: int) -> Iterator[None]:
    """Remove what Python and perf leave in /tmp, a place that CPython does not let anybody choose."""
    try:
        yield
    finally:
        for pattern in (f"jit-{pid}.dump", f"jitted-{pid}-*.so", f"perf-{pid}.map"):
            for file in Path("/tmp").glob(pattern):  # noqa: S108  (only what is named after our own process)
                with contextlib.suppress(OSError):
                    file.unlink()
