"""One block of a comparison: two processes, one for each side, prepare and train in turns.

Both are alive at the same time but never work at the same time. They take turns within a fraction of a second, so what
slows the machine for longer slows both ("Duet benchmarking", Bulej et al., ICPE 2020, runs both at the same time, which
two hardware threads of one core can't). Which one goes first is drawn for each turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from zoomgrad.harness.compare import SIDES
from zoomgrad.harness.compare.layout import Layout
from zoomgrad.harness.compare.sides import Place
from zoomgrad.harness.containment import adopt_orphans, end
from zoomgrad.harness.interrupts import uninterrupted
from zoomgrad.harness.run.isolate import worker_environment
from zoomgrad.results.record import Cell

PLAYER = Path(__file__).parents[1] / "worker" / "player.py"

TURNS = 40
"""Values of each side in a block."""

PREPARATIONS, PREPARE_SECONDS = 4, 1.0
"""Prepare at most this often, and not again after this time. One preparation varies by a third."""

LAYOUTS, LAYOUT_SECONDS = 8, 1.5
"""Layouts of each side in a block, which its values use in turns; no further one after this time.

Two links of the same objects differ by up to a tenth. A link is much cheaper than a process and a compilation.
"""

WARM_SECONDS, JIT_WARM_SECONDS = 0.1, 2.0
LONGEST_SECONDS = 600.0
"""Time limit of a command."""


class Failed(Exception):
    """A side could not do its part, or `both` could not. Holds the side and the reason."""

    def __init__(self, side: str, reason: str) -> None:
        super().__init__(reason)
        self.side = side


@dataclass(frozen=True)
class Job:
    """A block to measure. Both sides get the same layout, so parts that are equal have equal addresses."""

    cell: Cell
    places: Mapping[str, Place]
    layout: Layout
    seed: int
    """Of the order of turns."""
    steps: int = 0
    """Of a value; 0 if the block must find out."""

    @property
    def has_jit(self) -> bool:
        return any(place.pythons[self.cell.interpreter][1] for place in self.places.values())


class Process:
    """One side's process."""

    def __init__(self, side: str, job: Job, folder: Path) -> None:
        self.side = side
        place = job.places[side]
        (folder / side).mkdir()
        self._errors = (folder / f"{side}.txt").open("w+", encoding="utf-8", errors="replace")
        part: dict[str, Any] = {"engine": job.cell.engine, "workload": job.cell.workload}
        part["layout"] = {**job.layout.job, "objects": str(folder / side)}
        python, _ = place.pythons[job.cell.interpreter]
        self._known = adopt_orphans()
        self._process = subprocess.Popen(  # noqa: S603  (a list of arguments, none of them read by a shell)
            [str(python), str(PLAYER), str(place.checkout), json.dumps(part)],
            cwd=place.checkout,
            # Without caches, each process builds its own objects, and the user's cache gets none of them.
            env={
                **worker_environment(job.layout.draw),
                "PYTHONPATH": str(place.checkout),
                "ZOOMGRAD_CACHE": "off",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def __call__(self, do: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Send a command and wait for its answer. Raises Failed."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(f"{json.dumps([do, values])}\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], LONGEST_SECONDS)[0]:
                raise Failed(self.side, f"`{do}` took longer than {LONGEST_SECONDS:g} s")
            answer = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            self._errors.seek(0)
            last = self._errors.read().strip().rpartition("\n")[2]
            raise Failed(self.side, f"its process ended at `{do}`: {last or 'no output'}") from None
        if "failed" in answer:
            raise Failed(self.side, str(answer["failed"]))
        return dict(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with uninterrupted():
            end(self._process, self._known)  # also ends compilers, which have their own process groups
        self._process.communicate()
        self._errors.close()


def play(job: Job) -> dict[str, Any]:
    """Play one block, and return each side's figures. Raises Failed."""
    rng = random.Random(job.seed)
    processor = rng.choice(_processors())
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True)))
        processes = [stack.enter_context(Process(side, job, folder)) for side in rng.sample(SIDES, k=len(SIDES))]

        def in_turn(do: str, **values: Any) -> dict[str, dict[str, Any]]:
            answers, failures = {}, list[Failed]()
            for process in rng.sample(processes, k=len(processes)):
                try:
                    answers[process.side] = process(do, values)
                except Failed as failed:
                    failures.append(failed)
            if len(failures) == len(SIDES):
                raise Failed("both", str(failures[0]))
            if failures:
                raise failures[0]
            return answers

        prepared, start = [in_turn("prepare")], time.perf_counter()
        while len(prepared) < PREPARATIONS and time.perf_counter() - start < PREPARE_SECONDS:
            prepared.append(in_turn("prepare"))
        steps = job.steps or min(answer["steps"] for answer in in_turn("scout").values())
        layouts, start = 1, time.perf_counter()
        # A JIT would have to warm up for each, and threads of idle programs may wait by spinning.
        has_one = job.has_jit or "threads" in job.cell.engine
        while not has_one and layouts < LAYOUTS and time.perf_counter() - start < LAYOUT_SECONDS:
            in_turn("again", steps=steps)
            layouts += 1
        # Two processors are not equally busy. On one of them, both sides meet the same neighbours.
        seconds = JIT_WARM_SECONDS if job.has_jit else WARM_SECONDS
        warm = in_turn("warm", steps=steps, seconds=seconds, processor=processor)
        turns = [in_turn("value", steps=steps, layout=turn % layouts) for turn in range(TURNS)]
    sides = {
        side: {
            "step_seconds": [turn[side]["seconds"] / steps for turn in turns],
            "processor_seconds": [turn[side]["processor_seconds"] / steps for turn in turns],
            "waits": sum(turn[side]["waits"] for turn in turns),
            "compile_seconds": [each[side]["seconds"] for each in prepared],
            "bits": warm[side]["bits"],
        }
        for side in SIDES
    }
    return {"steps": steps, "layouts": layouts, **sides}


def _processors() -> list[int]:
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
