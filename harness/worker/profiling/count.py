"""Count the instructions of training, a figure that machine noise does not change.

`python -m harness.worker.profiling.count JOB` runs alone if the processor counts, else under callgrind. It trains two
portions of steps, both from step 0. The longer one includes all steps of the shorter one, so the difference of their
counts is the count of the additional steps.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Protocol

from engines.api import Unavailable
from engines.kernel import building, toolchains
from engines.kernel.building import BuildFailed
from harness.worker.job import CountJob, CountReply, do_job, ready

NATIVE = "-march=native"
PORTABLE = "x86-64-v3"
"""AVX2, the newest vectors that valgrind supports. One target for all machines makes their counts equal."""


class Counter(Protocol):
    """Counts the instructions between `start` and `stop`."""

    def start(self) -> None: ...
    def stop(self) -> float: ...


def count(job: CountJob) -> CountReply:
    """Prepare the engine, and train each portion of steps under the counter."""
    engine, workload, refusal = ready(job["engine"], job["workload"])
    if refusal:
        return {"status": "skipped", "reason": refusal, "remedy": "Choose another engine."}
    compiled: Any = engine
    if job["target"]:
        compiled.flags = retargeted(compiled.flags, job["target"])
    tool = toolchains.find(compiled.compiler)
    trainer = engine.prepare(workload)
    portions = [steps_of(portion, workload.batch) for portion in (0, job["steps"])]
    counts = []
    with COUNTERS[job["counter"]](job) as counter:
        trainer.train(1)  # the first call resolves symbols
        for steps in portions:
            trainer.restart(batch=workload.batch)
            counter.start()
            trainer.train(steps)
            counts.append(counter.stop())
    return {
        "status": "measured",
        "steps": portions[1] - portions[0],
        "counts": counts,
        "compiler": str(tool),
        "flags": list(compiled.flags),
    }


def steps_of(steps: int, batch: int) -> int:
    """One batch plus `steps` rounded up to whole batches, so that each step has its share of an update."""
    return batch + -(-steps // batch) * batch


def retargeted(flags: tuple[str, ...], target: str) -> tuple[str, ...]:
    """Replace the host's architecture in the flags by one that is the same everywhere."""
    return tuple(f"-march={target}" if flag == NATIVE else flag for flag in flags)


# Callgrind

REQUESTS = """\
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(void) { CALLGRIND_DUMP_STATS; CALLGRIND_STOP_INSTRUMENTATION; }
"""


class Callgrind:
    """Counter of a process that already runs under callgrind. It switches counting on and off with client requests."""

    def __init__(self, requests: Any, dump: str) -> None:
        self._requests = requests
        self._dump = dump
        self._parts = 0

    def start(self) -> None:
        self._requests.start()

    def stop(self) -> float:
        self._requests.stop()
        self._parts += 1
        return inside(Path(f"{self._dump}.{self._parts}").read_text(encoding="utf-8", errors="replace"))


def inside(dump: str, compiled: str = building.FOLDER_PREFIX) -> float:
    """Inclusive instructions of all calls from other objects into objects with `compiled` in their paths.

    Excludes the Python around them, whose count depends on the addresses of its objects: it varies by a percent of a
    short step.
    The format is valgrind's cl-format.html: a name is given once, then abbreviated by its number, and a missing `cob`
    means the same object as `ob`.
    """
    names: dict[str, str] = {}
    found = 0.0
    caller = callee = ""
    entered = False
    for line in dump.splitlines():
        match = _OBJECT.fullmatch(line)
        if match:
            name = names.setdefault(match["number"], match["name"])
            caller, callee = (caller, name) if match["callee"] else (name, "")
        elif line.startswith("calls="):
            entered = compiled in (callee or caller) and compiled not in caller
            callee = ""
        elif entered:
            found += float(line.split()[-1])
            entered = False
    return found


_OBJECT = re.compile(r"(?P<callee>c)?ob=(?P<number>\(\d+\))(?: (?P<name>.*))?")


@contextmanager
def callgrind(job: CountJob) -> Iterator[Counter]:
    """Yield callgrind's counter. Raises Unavailable if valgrind's header is missing."""
    tool = _a_compiler_with_assembler()
    try:
        with building.build(tool, [REQUESTS], ["-O1"]) as built:
            yield Callgrind(ctypes.CDLL(str(built.path)), job["dump"])
    except BuildFailed as failed:
        raise Unavailable(
            f"valgrind's requests don't compile: {failed.reason}",
            "Install valgrind with its headers, for example `apt install valgrind` or `dnf install valgrind-devel`.",
        ) from failed


def _a_compiler_with_assembler() -> toolchains.Toolchain:
    try:
        return toolchains.find("gcc")
    except Unavailable:
        return toolchains.find("clang")


# The processor

INSTRUCTIONS = (0, 1)
"""PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, of linux/perf_event.h."""
SYSCALLS = {"x86_64": 298, "aarch64": 241}
"""perf_event_open."""
DISABLED, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 0, 1 << 5, 1 << 6
ENABLE, DISABLE, RESET = 0x2400, 0x2401, 0x2403
WHY = {
    errno.EACCES: ("the system does not permit counting", "As root: `sysctl kernel.perf_event_paranoid=2`."),
    errno.EPERM: ("the system does not permit counting", "As root: `sysctl kernel.perf_event_paranoid=2`."),
}
NO_COUNTERS = ("the processor offers no instruction counter, as in most virtual machines", "Count with callgrind.")


class Processor:
    """This thread's instructions in user space, as `perf stat -e instructions:u` counts them."""

    def __init__(self, event: tuple[int, int] = INSTRUCTIONS) -> None:
        number = SYSCALLS.get(platform.machine()) if sys.platform == "linux" else None
        if number is None:
            raise Unavailable(f"no counters are known on {sys.platform}, {platform.machine()}", "Count with callgrind.")
        kind, config = event
        # struct perf_event_attr, version 0: type, size, config, period, sample_type, read_format, flags; the rest is 0.
        flags = DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR
        attributes = struct.pack("=IIQQQQQ", kind, 64, config, 0, 0, 0, flags).ljust(64, b"\0")
        libc = ctypes.CDLL(None, use_errno=True)
        zero, any_, none = ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_ulong(0)
        self._file = libc.syscall(ctypes.c_long(number), attributes, zero, any_, any_, none)
        if self._file < 0:
            raise Unavailable(*WHY.get(ctypes.get_errno(), NO_COUNTERS))

    def start(self) -> None:
        self._control(RESET)
        self._control(ENABLE)

    def stop(self) -> float:
        self._control(DISABLE)
        (value,) = struct.unpack("=Q", os.read(self._file, 8))
        return float(value)

    def close(self) -> None:
        os.close(self._file)

    def _control(self, request: int) -> None:
        import fcntl  # not on Windows

        fcntl.ioctl(self._file, request, 0)


@contextmanager
def processor(job: CountJob) -> Iterator[Counter]:
    """Yield the processor's counter. Raises Unavailable if there is none, or if the system does not permit its use."""
    counter = Processor()
    try:
        yield counter
    finally:
        counter.close()


COUNTERS: dict[str, Callable[[CountJob], Any]] = {"callgrind": callgrind, "processor": processor}
"""Value of a job's `counter` -> context manager of the counter."""

if __name__ == "__main__":
    do_job(count)
