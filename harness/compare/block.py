"""One block of a comparison: two processes, one for each side, prepare and train in turns.

`python -m zoomgrad.harness.compare.block JOB` starts both, which are alive at the same time but never work at the same
time. They take turns within a fraction of a second, so what slows the machine for longer slows both ("Duet
benchmarking", Bulej et al., ICPE 2020, runs both at the same time, which two hardware threads of one core can't). Which
one goes first is drawn for each turn.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from zoomgrad.harness.worker.job import write_json
from zoomgrad.harness.worker.lifeline import end_with_the_harness

SIDES = ("base", "head")

TURNS = 40
"""Values of each side in a block."""

PREPARATIONS, PREPARE_SECONDS = 4, 1.0
"""Prepare at most this often, and not again after this time. One preparation varies by a third."""

LAYOUTS, LAYOUT_SECONDS = 8, 1.5
"""Layouts of each side in a block, which its values use in turns; no further one after this time.

Two links of the same objects differ by up to a tenth. A link is much cheaper than a process and a compilation.
"""

WARM_SECONDS, JIT_WARM_SECONDS = 0.1, 2.0


class Failed(Exception):
    """A side could not do its part, or `both` could not. Holds the side and the reason."""

    def __init__(self, side: str, reason: str) -> None:
        super().__init__(reason)
        self.side = side


class Process:
    """One side's process."""

    def __init__(self, side: str, job: Mapping[str, Any]) -> None:
        self.side = side
        self._job: Mapping[str, Any] | None = {name: job[name] for name in ("engine", "workload", "layout")}
        self._process = subprocess.Popen(  # noqa: S603  (a list of arguments, none of them read by a shell)
            [job["python"], job["player"], job["checkout"]],
            cwd=job["checkout"],
            env=job["environment"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, do: str, **values: Any) -> dict[str, Any]:
        """Send a command and wait for its answer. Raises Failed."""
        assert self._process.stdin and self._process.stdout
        job, self._job = self._job, None
        line = ""
        try:
            self._process.stdin.write(f"{json.dumps({'do': do, **values, **({'job': job} if job else {})})}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            answer = json.loads(line)
        except (OSError, ValueError):
            code = self._process.wait() if not line else "none"
            raise Failed(self.side, f"its process ended with exit code {code} at `{do}`") from None
        if "failed" in answer:
            raise Failed(self.side, str(answer["failed"]))
        return dict(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()


def play(job: Mapping[str, Any]) -> dict[str, Any]:
    """Play one block, and return each side's figures. Raises Failed."""
    rng = random.Random(job["seed"])
    first, second = rng.sample(SIDES, k=2)
    with Process(first, job["sides"][first]) as one, Process(second, job["sides"][second]) as other:
        both = {first: one, second: other}

        def in_turn(do: str, **values: Any) -> dict[str, dict[str, Any]]:
            answers, failures = {}, list[Failed]()
            for side in rng.sample(SIDES, k=2):
                try:
                    answers[side] = both[side](do, **values)
                except Failed as failed:
                    failures.append(failed)
            if len(failures) == 2:
                raise Failed("both", str(failures[0]))
            if failures:
                raise failures[0]
            return answers

        in_turn("ready")
        phases: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
        start = time.perf_counter()
        while True:
            for side, answer in in_turn("prepare").items():
                phases[side].append(answer["phases"])
            if time.perf_counter() - start > PREPARE_SECONDS or len(phases[first]) == PREPARATIONS:
                break
        steps = job["steps"] or min(answer["steps"] for answer in in_turn("scout").values())
        layouts, start = 1, time.perf_counter()
        # A JIT would have to warm up for each, and threads of idle programs may wait by spinning.
        has_one = job["has_jit"] or "threads" in job["sides"][first]["engine"]
        while not has_one and layouts < LAYOUTS and time.perf_counter() - start < LAYOUT_SECONDS:
            in_turn("again", steps=steps)
            layouts += 1
        warm = in_turn("warm", steps=steps, seconds=JIT_WARM_SECONDS if job["has_jit"] else WARM_SECONDS)
        # Two processors are not equally busy. On one of them, both sides meet the same neighbours.
        in_turn("pin", processor=job["processor"])
        turns = [in_turn("value", steps=steps, layout=turn % layouts) for turn in range(TURNS)]
    return {
        "steps": steps,
        "layouts": layouts,
        **{
            side: {
                "step_seconds": [turn[side]["seconds"] / steps for turn in turns],
                "processor_seconds": [turn[side]["processor_seconds"] / steps for turn in turns],
                "waits": sum(turn[side]["waits"] for turn in turns),
                "compile_seconds": [sum(each.values()) for each in phases[side]],
                "bits": warm[side]["bits"],
            }
            for side in SIDES
        },
    }


def main() -> None:
    """Play the block of the job file that the first argument names, and write its reply."""
    end_with_the_harness()
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        reply = play(job)
    except Failed as failed:
        reply = {"failed": str(failed), "side": failed.side}
    write_json(job["reply_file"], reply)


if __name__ == "__main__":
    main()
