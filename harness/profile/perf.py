"""perf on Linux: samples by C function of the interpreter, with Python functions on the stacks from 3.13 on.

perf samples every few milliseconds of CPU time by the software clock, because many machines offer no hardware counters.
Builds of Python rarely keep frame pointers, so perf unwinds a copy of the stack (`--call-graph dwarf`). Python's frames
appear only if its trampoline describes itself to the unwinder (`-X perf_jit`). The worker switches perf on and off
through a pipe, so that its start is not sampled.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from zoomgrad.engines.asking import NoAnswer, ask, which
from zoomgrad.harness.profile.profile_session import WORKER, Session, common
from zoomgrad.harness.profile.symbols import Frame, group_of
from zoomgrad.harness.run.replies import NoResult
from zoomgrad.results.profile import Symbol

HERTZ = 299
"""Sampling frequency, chosen so that samples do not coincide with the system's periodic work."""
STACK_BYTES = 8192
SYMBOLS = 80
"""Number of symbols to keep, with copies of a function counted separately. Far fewer reach 0.5 %, the cut-off of the
published table."""
READING_SECONDS = 300.0
MOST_BYTES = 1 << 30
PROBE_SECONDS = 20.0
FEWEST = 50
"""Least number of samples for meaningful shares."""

REMEDY = "Install it, for example `apt install linux-perf`."


def profile(session: Session) -> dict[str, Any]:
    """Shares of samples by symbol and by group. Also stores the stacks."""
    program = find()
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as name:
        folder = Path(name)
        control = folder / "control"
        os.mkfifo(control, 0o600)
        data = folder / "perf.data"
        host = session.interpreter
        has_trampoline = host.implementation == "cpython" and host.minor >= (3, 13)
        python = [session.python(), *(("-X", "perf_jit") if has_trampoline else ())]
        command = [
            *(program, "record", "--quiet", "--event=cpu-clock", f"--freq={HERTZ}", "--clockid=monotonic"),
            *(f"--call-graph=dwarf,{STACK_BYTES}", "--no-buildid", "--no-buildid-cache", f"--output={data}"),
            *("--delay=-1", f"--control=fifo:{control}", "--", *python, *WORKER),
        ]
        reply = session.work(command, ZOOMGRAD_PERF_CONTROL=str(control))
        with _without_litter(reply["pid"]):
            if has_trampoline:
                injected = folder / "injected.data"
                with contextlib.suppress(NoResult):
                    _read([program, "inject", "--jit", f"--input={data}", f"--output={injected}"], folder)
                data = injected if injected.exists() else data
            text = _read([program, "script", "--no-inline", "--fields=ip,sym,dso", f"--input={data}"], folder)
    stacks = list(samples(text.splitlines()))
    if len(stacks) < FEWEST:
        raise NoResult("failed", f"perf took only {len(stacks)} samples", "Give it longer with --seconds.")
    _keep_stacks(stacks, session.folder / "perf.folded")
    version = _read([program, "version"], session.folder).strip().replace(" version", "")
    return {**common(reply), "tool": version, **shares(stacks)}


def shares(stacks: Sequence[Sequence[Frame]]) -> dict[str, Any]:
    """Shares of all samples by group and by innermost function."""
    by_frame = Counter((stack[0], group_of(stack)) for stack in stacks)
    groups: Counter[str] = Counter()
    for (_, group), count in by_frame.items():
        groups[group] += count
    return {
        "samples": len(stacks),
        "groups": {group: count / len(stacks) for group, count in groups.most_common()},
        "symbols": tuple(
            Symbol(name=frame.symbol, object=frame.object, group=group, share=count / len(stacks))
            for (frame, group), count in by_frame.most_common(SYMBOLS)
        ),
    }


def samples(lines: Iterable[str]) -> Iterator[list[Frame]]:
    """Parse the output of `perf script` into stacks, innermost frame first. An empty line ends a sample."""
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
    """`py::Value.f:/a/b.py` belongs to that source file, not to the object that Python's trampoline made for perf."""
    if symbol.startswith("py::"):
        function, _, file = symbol.removeprefix("py::").rpartition(":")
        return Frame(f"py::{function}", Path(file).name)
    return Frame(symbol, Path(path.removesuffix(" (deleted)")).name)


def _keep_stacks(stacks: Iterable[Sequence[Frame]], file: Path) -> None:
    """Write folded stacks, outermost first: Python functions inside `exercise`, then C called by the innermost one.

    Omits the interpreter's C frames between two Python functions, because they are always the same.
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
        raise NoResult("timed-out" if none.is_late else "failed", f"perf {command[1]} {none}") from None


@contextlib.contextmanager
def _without_litter(pid: int) -> Iterator[None]:
    """Remove the files that Python and perf leave in /tmp, a location that CPython hard-codes."""
    try:
        yield
    finally:
        for pattern in (f"jit-{pid}.dump", f"jitted-{pid}-*.so", f"perf-{pid}.map"):
            for file in Path("/tmp").glob(pattern):  # noqa: S108  (only what is named after our own process)
                with contextlib.suppress(OSError):
                    file.unlink()
