"""One block of a comparison: two processes, one for each side, prepare and train in turns.

Both are alive at the same time but never work at the same time. They take turns within a fraction of a second, so what
slows the machine for longer slows both ("Duet benchmarking", Bulej et al., ICPE 2020, runs both at the same time, which
two hardware threads of one core can't). Which one goes first is drawn for each turn.

Each block draws a layout: the environment's size, the hash seed, and how code is built. Both sides get the same draw,
so a difference between them is not the accident of one layout.
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
from pathlib import Path
from typing import Any, Self

from zoomgrad.harness import workloads
from zoomgrad.harness.compare.sides import SIDES, Side, Sides
from zoomgrad.harness.containment import end_session
from zoomgrad.harness.interrupts import held
from zoomgrad.harness.machine.environments import environment
from zoomgrad.harness.run.isolate import worker_environment
from zoomgrad.results.record import Cell
from zoomgrad.results.turns import Block

PLAYER = Path(__file__).parents[1] / "worker" / "player.py"

TURNS = 40
"""Values of each side in a block."""

PREPARATIONS, PREPARE_SECONDS = 8, 2.5
"""Prepare at most this often, and not again after this time. One preparation takes up to a third longer than another,
and two links of the same objects differ by up to a tenth in speed, so a side's values use its preparations in turns."""
VALUE_SECONDS = 0.02
"""Approximate duration of a value, a few of which fit into the second that a neighbour's burst lasts."""
WARM_SECONDS, JIT_WARM_SECONDS = 0.2, 4.0
"""Duration of the warm-up, for both sides together."""
LONGEST_SECONDS = 600.0
"""Time limit of a command."""


class Failed(Exception):
    """A side could not do its part; empty if it is not known which."""

    def __init__(self, side: str, reason: str) -> None:
        super().__init__(f"no result{side and f' on {side}'}: {reason}")
        self.side = side
        self.reason = reason


class Process:
    """One side's process."""

    def __init__(self, name: str, side: Side, python: Path, part: dict[str, Any], draw: int, folder: Path) -> None:
        self.side = name
        self._errors = (folder / f"{name}.txt").open("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(  # noqa: S603  (a list of arguments, none of them read by a shell)
            [str(python), str(PLAYER), str(side.checkout), json.dumps(part)],
            cwd=side.checkout,
            # Without caches, each process builds its own objects, and the user's cache gets none of them.
            env={**worker_environment(draw), "PYTHONPATH": str(side.checkout), "ZOOMGRAD_CACHE": "off"},
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
        end_session(self._process.pid)
        self._process.communicate()
        self._errors.close()


def play(cell: Cell, sides: Sides, seed: int, steps: int = 0) -> Block:
    """Play one block. Raises Failed, and ValidationError for figures that are out of range.

    seed: of the layout and the order of turns. steps: number in a value; 0 to measure how many fill one.
    """
    rng = random.Random(seed)
    processor = rng.choice(sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0])
    has_jit = any(side.hosts[cell.interpreter].warms_up for side in sides.values())
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True)))
        draw = rng.randrange(1, 2**32)
        part = {"engine": cell.engine, "workload": cell.workload, "layout_seed": rng.randrange(2**32)}
        # A JIT would have to warm up for each program, and threads of idle programs may wait by spinning.
        has_one = has_jit or "threads" in cell.engine
        pythons = {name: environment(side.hosts[cell.interpreter]) for name, side in sides.items()}
        with held():
            processes = [
                stack.enter_context(Process(side, sides[side], pythons[side], part, draw, folder))
                for side in rng.sample(SIDES, k=len(SIDES))
            ]

        def in_turn(do: str, **values: Any) -> dict[str, dict[str, Any]]:
            answers, failures = {}, {}
            for process in rng.sample(processes, k=len(processes)):
                try:
                    answers[process.side] = process(do, values)
                except Failed as failed:
                    failures[process.side] = failed
            for side in SIDES:  # if neither works, the change is not the reason
                if side in failures:
                    raise failures[side]
            return answers

        prepared, start = [in_turn("prepare", alone=has_one)], time.perf_counter()
        while len(prepared) < PREPARATIONS and time.perf_counter() - start < PREPARE_SECONDS:
            prepared.append(in_turn("prepare", alone=has_one))
        layouts = 1 if has_one else len(prepared)
        if not steps:
            steps = workloads.load(cell.workload).batch  # whole batches, so that each value has its share of updates
            while 2 * max(each["seconds"] for each in in_turn("value", steps=steps).values()) <= VALUE_SECONDS:
                steps *= 2
        # Two processors are not equally busy. On one of them, both sides meet the same neighbours.
        marks = in_turn("bits", steps=steps, processor=processor)
        warm_at = time.perf_counter() + (JIT_WARM_SECONDS if has_jit else WARM_SECONDS)
        while time.perf_counter() < warm_at:
            in_turn("value", steps=steps)
        for turn in range(layouts):
            in_turn("value", steps=steps, layout=turn)
        turns = [in_turn("value", steps=steps, layout=turn % layouts) for turn in range(TURNS)]
    figures = {
        side: {
            "step_seconds": [turn[side]["seconds"] / steps for turn in turns],
            "compile_seconds": [each[side]["seconds"] for each in prepared],
            **marks[side],
        }
        for side in SIDES
    }
    return Block.model_validate({"steps": steps, "layouts": layouts, **figures})
