"""Plan of a comparison -> blocks, until each cell has a verdict or the time is up.

Each round plays one block of every cell that has no verdict yet, in shuffled order. A cell that fails on either side is
left out, with the reason.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zoomgrad.harness.compare import SIDES, layout
from zoomgrad.harness.compare.turns import Absence, Block, Outcome, Plan, undecided, verdicts
from zoomgrad.harness.containment import Limits, run
from zoomgrad.harness.machine.project import importable
from zoomgrad.harness.run.isolate import worker_environment
from zoomgrad.results.files import Unreadable, first_of
from zoomgrad.results.record import Cell

PLAYER = Path(__file__).parents[1] / "worker" / "player.py"

LIMITS = Limits(timeout_seconds=600.0)
"""Of a block."""

MOST_CHARACTERS = 2000
"""Longest reason that is kept."""


@dataclass(frozen=True)
class Place:
    """Where one side's processes run."""

    checkout: Path
    pythons: Mapping[str, tuple[Path, bool]]
    """Interpreter of a cell -> the Python of the side's environment, and whether it has a JIT."""


Play = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Play one block and return its reply. Tests replace it."""


def play(job: Mapping[str, Any]) -> dict[str, Any]:
    """Play a block in processes of their own, within limits. Any failure becomes a reply."""
    with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
        job_file, reply_file = Path(folder) / "job.json", Path(folder) / "reply.json"
        for side in SIDES:
            job["sides"][side]["layout"]["objects"] = str(Path(folder) / side)
            (Path(folder) / side).mkdir()
        job_file.write_text(json.dumps({**job, "reply_file": str(reply_file)}), encoding="utf-8")
        environment = {**job["sides"]["base"]["environment"], "PYTHONPATH": str(importable())}
        finished = run(
            [sys.executable, "-m", "zoomgrad.harness.compare.block", str(job_file)], environment, folder, LIMITS
        )
        if finished.code is None:
            return {"failed": LIMITS.reply(finished.limit)["reason"]}
        with contextlib.suppress(OSError, ValueError):
            reply = json.loads(reply_file.read_bytes()[: 1 << 22])
            if isinstance(reply, dict):
                if "its process ended" in str(reply.get("failed")) and finished.output:
                    reply["failed"] = f"{reply['failed']}: {finished.output.splitlines()[-1]}"
                return reply
        return {"failed": f"the block ended without figures: {finished.output or 'no output'}"}


def measure(
    plan: Plan,
    places: Mapping[str, Place],
    until: float,
    play: Play = play,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Outcome]:
    """Yield blocks until every cell and every mean has a verdict, or the time is up.

    places: by side. until: when the time is up, on the clock. Raises Unreadable if no cell has figures: a commit does
    not build, or no engine runs here.
    """
    outcomes: list[Outcome] = []
    steps: dict[Cell, int] = {}
    longest = 0.0
    cells: Sequence[Cell] = plan.cells
    for number in itertools.count():
        rng = random.Random(f"{plan.seed} {number}")
        for cell in rng.sample(cells, len(cells)):
            start, started_at = clock(), datetime.now(UTC)
            # Everything gets one block, so that a short time limit still finds out what fails.
            if number and start + longest > until:
                return
            reply = _reply(plan, places, cell, number, steps.get(cell, 0), play)
            seconds = max(0.0, clock() - start)
            longest = max(longest, seconds)
            about = {"cell": cell, "block": number, "started_at": started_at, "seconds": seconds}
            outcome = _outcome(cell, reply, about)
            if isinstance(outcome, Block):
                steps.setdefault(cell, outcome.steps)
            outcomes.append(outcome)
            yield outcome
        _refuse_hopeless(plan, outcomes)
        cells = undecided(verdicts(plan, outcomes))
        if not cells:
            return


def _outcome(cell: Cell, reply: dict[str, Any], about: dict[str, Any]) -> Outcome:
    """The block, or why there is none. Its figures come from an engine, which may be anybody's code."""
    if "failed" not in reply:
        try:
            return Block.model_validate({**reply, **about})
        except ValidationError as error:
            reply = {"failed": f"its figures are out of range: {first_of(error)}"}
    side = reply.get("side")
    reason = str(reply["failed"])[:MOST_CHARACTERS].strip() or "no reason given"
    return Absence.model_validate({"cell": cell, "side": side if side in (*SIDES, "both") else "", "reason": reason})


def _refuse_hopeless(plan: Plan, outcomes: Sequence[Outcome]) -> None:
    first = outcomes[0]
    if isinstance(first, Block) or any(isinstance(one, Block) for one in outcomes):
        return
    where = {"base": plan.base, "head": plan.head}.get(first.side, "both sides")
    raise Unreadable(
        f"{where}: {plan.subject(first.cell)} has no result: {first.reason.splitlines()[-1]}\n"
        "  Nothing could be measured. Try the engine with `zoomgrad run --preset smoke` there."
    )


def _reply(plan: Plan, places: Mapping[str, Place], cell: Cell, number: int, steps: int, play: Play) -> dict[str, Any]:
    rng = random.Random(f"{plan.seed} {number} {cell.key}")
    # Both sides draw the same, so what is equal in them lies equally.
    with layout.drawn(rng) as drawn:
        sides = {
            side: {
                "engine": cell.engine,
                "workload": cell.workload,
                "python": str(places[side].pythons[cell.interpreter][0]),
                "player": str(PLAYER),
                "checkout": str(places[side].checkout),
                # Without caches, each process builds its own objects, and the user's cache gets none of them.
                "environment": {
                    **worker_environment(drawn.draw),
                    "PYTHONPATH": str(places[side].checkout),
                    "ZOOMGRAD_CACHE": "off",
                },
                "layout": {**drawn.job},
            }
            for side in SIDES
        }
        job = {
            "seed": rng.randrange(2**32),
            "processor": rng.choice(_processors()),
            "steps": steps,
            "has_jit": any(place.pythons[cell.interpreter][1] for place in places.values()),
            "sides": sides,
        }
        return play(job)


def _processors() -> list[int]:
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
