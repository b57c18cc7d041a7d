"""Anatomy of a step: how long an interpreted engine takes to build its graph, order it, compute, update and free.

The trainer's stages are methods, which this module wraps while it times them. It wraps `Value.topo` in the class, to
separate ordering from the rest of the backward pass. A clock attributes every moment to exactly one part:

    train     ------------------------------------------------    rest 2 = 12 - 10
      build     -----------                                       5
      backward              -------------                         2 = 5 - 3
        order                 ------                              2
          (pause)               ---                               collector 1

A garbage collection interrupts the part that allocates. Its pause counts as `collector` instead of that part, and
`pauses` records the interrupted part.

The backward pass of `native` orders the graph itself, so that its `backward` includes `order`.

An engine that builds a graph for every step computes while it builds, so its `build` includes the forward pass.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Callable, Optional

from zoomgrad.engines.training import Trainer

PARTS = ("build", "forward", "order", "backward", "update", "free", "collector", "rest")
HAS_JIT = hasattr(gc, "hooks")
WARM_UP = 0.5 if HAS_JIT else 0.0
"""Warm-up as a share of the time measured after it; at least one step."""
INSTRUMENTED = 0.5
"""Share of the time for wrapped steps, and for unwrapped steps before."""
SAMPLES = 300
"""Approximate number of readings of the resident memory."""
ENOUGH_STEPS, FEWEST_STEPS, LONGEST = 24, 12, 8.0
"""Steps to watch the memory for, steps that are too few, and how long the training may be extended for them, as a
multiple of its planned time. In the first steps the heap has not yet grown to its working size."""
GROWING = 0.25
"""Share of the time in which the heap still grows, unless the first step takes longer."""
STATM = Path("/proc/self/statm")
PORTION_SECONDS = 0.05
"""Approximate time of a portion of steps. With one call per step, calls would dominate the time of a fast engine."""


class Clock:
    """Seconds by part, without counting any moment twice."""

    def __init__(self) -> None:
        self._part: Optional[str] = None
        """The running part; None between two steps."""
        self._since = self._paused = 0.0
        """When it began to run, and seconds of collections that no part has counted yet."""
        self.reset()

    def reset(self) -> None:
        """Set all parts to zero. Call it between two steps."""
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.pauses = dict.fromkeys(PARTS, 0.0)
        """Collector seconds by the part that they interrupted."""

    def timed(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the method, so that its own time counts as that part's."""

        def stage(*arguments: Any) -> Any:
            around = self._turn_to(part)
            try:
                return method(*arguments)
            finally:
                self._turn_to(around)

        return stage

    def _turn_to(self, part: Optional[str]) -> Optional[str]:
        """Count the time until now as the running part's, and run another. Return the part that ran."""
        now, ran = perf_counter(), self._part
        if ran is None:
            self._paused = 0.0
        else:
            elapsed = now - self._since
            # PyPy may report a pause after the part that it interrupted. The parts that follow make up the difference.
            pauses = min(self._paused, elapsed)
            self._paused -= pauses
            self.seconds[ran] += elapsed - pauses
            self.seconds["collector"] += pauses
            self.pauses[ran] += pauses
        self._part, self._since = part, now
        return ran

    def pause(self, seconds: float) -> None:
        """Report a garbage collection that has just ended."""
        self._paused += seconds


def portions(trainer: Trainer, seconds: float) -> list[tuple[int, float]]:
    """Train for about `seconds`. Return steps and seconds of each portion; the first one is a single step."""
    timed: list[tuple[int, float]] = []
    steps, end = 1, perf_counter() + seconds
    while not timed or perf_counter() < end:
        start = perf_counter()
        trainer.train(steps)
        taken = perf_counter() - start
        timed.append((steps, taken))
        if taken < PORTION_SECONDS:
            steps *= 2
    return timed


def anatomy(trainer: Any, seconds: float) -> dict[str, Any]:
    """Train unwrapped first, and read the memory; then time every stage."""
    seconds *= INSTRUMENTED
    portions(trainer, WARM_UP * seconds)
    watched = watch(trainer, seconds)
    clock = Clock()
    with _wrapped(trainer, clock), pauses(clock):
        portions(trainer, WARM_UP * seconds)
        clock.reset()
        steps, taken = map(sum, zip(*portions(trainer, seconds)))
    parts = {part: total / steps for part, total in clock.seconds.items()}
    # Only the clock around whole steps sees the time of a call or two.
    parts["rest"] = max(0.0, parts["rest"] + taken / steps - sum(parts.values()))
    return {
        **watched,
        "tool": "stages of a step, timed by the interpreter's own clock",
        "steps": steps,
        "seconds": taken,
        "parts": parts,
        "step_seconds": sum(parts.values()),
        "pauses": {part: total / steps for part, total in clock.pauses.items() if total},
    }


def watch(trainer: Trainer, seconds: float) -> dict[str, Any]:
    """Return the time of an unwrapped step, and the least resident memory early and late.

    Early and late are the first and the last third of the time after the heap has grown.
    """
    timed: list[tuple[int, float]] = []
    readings: list[tuple[float, int]] = []
    steps, elapsed, start = 0, 0.0, perf_counter()
    while elapsed < seconds or (steps < ENOUGH_STEPS and elapsed < LONGEST * seconds):
        timed += portions(trainer, seconds / SAMPLES)
        steps, taken = map(sum, zip(*timed))
        elapsed = perf_counter() - start
        readings.append((elapsed, resident_bytes()))
    grown = max(timed[0][1], GROWING * elapsed)
    third = (elapsed - grown) / 3
    floors = [
        min((resident for at, resident in readings if begin <= at <= begin + third), default=0)
        for begin in (grown, elapsed - third)
    ]
    early, late = floors if steps >= FEWEST_STEPS else (0, 0)
    return {"plain_step_seconds": taken / steps, "early_floor_bytes": early, "late_floor_bytes": late}


def resident_bytes() -> int:
    """Resident memory of this process; 0 on a system that does not report it."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if STATM.exists() else 0


@contextmanager
def _wrapped(trainer: Any, clock: Clock) -> Iterator[None]:
    """Time every stage, and the ordering inside one. The remaining training time is `rest`."""
    places = [(trainer, "train", "rest"), *((trainer, stage, stage) for stage in trainer.STAGES)]
    with ExitStack() as undo:
        for owner, name, part in (*places, (trainer.Value, "topo", "order")):
            if name in vars(owner):
                undo.callback(setattr, owner, name, vars(owner)[name])
            else:  # its class has the method
                undo.callback(delattr, owner, name)
            setattr(owner, name, clock.timed(part, getattr(owner, name)))
        yield


@contextmanager
def pauses(clock: Clock) -> Iterator[None]:
    """Report every collection to the clock: through `gc.hooks` on PyPy, `gc.callbacks` on CPython."""
    started = 0.0

    def notified(event: str, facts: dict[str, int]) -> None:
        nonlocal started
        if event == "start":
            started = perf_counter()
        else:
            clock.pause(perf_counter() - started)

    hooks: Any = getattr(gc, "hooks", None)  # only PyPy has it
    if hooks:
        hooks.on_gc_minor = hooks.on_gc_collect_step = lambda stats: clock.pause(stats.duration)
    else:
        gc.callbacks.append(notified)
    try:
        yield
    finally:
        if hooks:
            hooks.reset()
        else:
            gc.callbacks.remove(notified)
