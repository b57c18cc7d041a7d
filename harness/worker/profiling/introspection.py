"""Probes of the interpreter while an engine trains: its garbage collector and its just-in-time compiler.

A probe is a context manager around the training, and writes its readings into a plain dictionary. The probes `anatomy`
and `memory` have separate modules. `profile.PROBES` lists all of them.
"""

from __future__ import annotations

import gc
import importlib
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any, Callable, NamedTuple, Optional

from zoomgrad.engines.api import Trainer
from zoomgrad.harness.workloads import Workload

SAMPLE_SECONDS = 0.005

Readings = dict[str, Any]


class Subject(NamedTuple):
    """The training that a probe observes."""

    trainer: Trainer
    """The trainer that the caller trains."""
    workload: Workload
    seconds: float
    """Approximate training time."""
    folder: Path
    """Folder for the probe's files."""


Probe = Callable[[Readings, Subject], AbstractContextManager[None]]
"""(readings to fill, subject) -> context manager around the training."""


def nothing(readings: Readings, subject: Subject) -> AbstractContextManager[None]:
    """No probe, for a profiler outside the process."""
    return nullcontext()


def collector(readings: Readings, subject: Subject) -> AbstractContextManager[None]:
    """Count and time garbage collections, by generation."""
    return _collector_of_pypy(readings) if hasattr(gc, "hooks") else _collector_of_cpython(readings, subject.trainer)


@contextmanager
def _collector_of_cpython(readings: Readings, trainer: Trainer) -> Iterator[None]:
    readings["blocks_left"] = _blocks_left(trainer)
    gc.collect()
    before = peak = sys.getallocatedblocks()
    found: dict[int, list[float]] = {}
    started = 0.0

    def told(event: str, facts: dict[str, int]) -> None:
        nonlocal started, peak
        if event == "start":
            peak = max(peak, sys.getallocatedblocks())
            started = perf_counter()
            return
        seconds = perf_counter() - started
        generation = found.setdefault(facts["generation"], [0, 0.0, 0])
        generation[0] += 1
        generation[1] += seconds
        generation[2] += facts["collected"]

    gc.callbacks.append(told)
    try:
        yield
    finally:
        gc.callbacks.remove(told)
        readings["peak_blocks"] = peak - before
        readings["generations"] = [
            {"name": f"generation {number}", "collections": count, "seconds": seconds, "collected": collected}
            for number, (count, seconds, collected) in sorted(found.items())
        ]


def _blocks_left(trainer: Trainer) -> int:
    """Memory blocks that a step leaves to the collector. An uncounted step before it makes the one-off allocations."""
    trainer.train(1)
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        trainer.train(1)
        return sys.getallocatedblocks() - before
    finally:
        gc.enable()
        gc.collect()


@contextmanager
def _collector_of_pypy(readings: Readings) -> Iterator[None]:
    hooks: Any = gc.hooks  # type: ignore[attr-defined]  # only PyPy has it
    found: dict[str, list[float]] = {}

    def telling(name: str) -> Any:
        def told(stats: Any) -> None:
            generation = found.setdefault(name, [0, 0.0])
            generation[0] += stats.count
            generation[1] += stats.duration

        return told

    hooks.on_gc_minor = telling("minor")
    hooks.on_gc_collect_step = telling("major, a step")
    try:
        yield
    finally:
        hooks.reset()
        readings["generations"] = [
            {"name": name, "collections": int(count), "seconds": seconds} for name, (count, seconds) in found.items()
        ]


@contextmanager
def jit(readings: Readings, subject: Subject) -> Iterator[None]:
    """Read how long PyPy traced and compiled during the training, and sample Python stacks."""
    _compile_something()
    before = _jit_figures()
    samples: Counter[str] = Counter()
    with _sampler(samples):
        yield
    after = _jit_figures()
    readings.update({name: after[name] - before.get(name, 0) for name in after})
    with (subject.folder / "jit.folded").open("w", encoding="utf-8") as file:
        file.writelines(f"{stack} {count}\n" for stack, count in sorted(samples.items()))


def _jit_figures() -> dict[str, float]:
    """PyPy's counters and times so far, in one flat dictionary."""
    pypyjit = importlib.import_module("pypyjit")
    snapshot = pypyjit.get_stats_snapshot()
    figures = {**snapshot.counters, **{f"{name}_seconds": value for name, value in snapshot.counter_times.items()}}
    figures["machine_code_bytes"] = pypyjit.get_stats_asmmemmgr()[1]
    return figures


def _compile_something() -> int:
    """Trigger a compilation, because PyPy 7.3.11 crashes when its figures are read before it has compiled anything."""
    total = 0
    for number in range(10_000):
        total += number & 3
    return total


@contextmanager
def _sampler(samples: Counter[str]) -> Iterator[None]:
    """Count stacks of Python functions, sampled by a CPU-time timer."""

    def sample(number: int, frame: Any) -> None:
        samples[stack_of(frame)] += 1

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def stack_of(frame: Optional[FrameType]) -> str:
    """Stack as text: frames as `function (file)`, outermost first, without `exercise` and its callers."""
    names: list[str] = []
    while frame and frame.f_code.co_name != "exercise":
        names.append(f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name})")
        frame = frame.f_back
    return ";".join(reversed(names)) or "exercise"
