"""Plan of a comparison -> blocks, until each cell has a verdict or the time is up.

Each round plays one block of every cell that has no verdict yet, in shuffled order. Blocks are on disk as soon as they
end. A cell that fails on either side is left out, with the reason.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from zoomgrad.harness.compare import layout
from zoomgrad.harness.compare.block import SIDES
from zoomgrad.harness.compare.turns import Absence, Block, Plan, undecided, verdicts
from zoomgrad.harness.containment import Limits, run
from zoomgrad.harness.machine.project import importable
from zoomgrad.harness.run.isolate import worker_environment
from zoomgrad.results.compare import Verdict
from zoomgrad.results.files import Unreadable, first_of
from zoomgrad.results.record import Cell

PLAYER = Path(__file__).parents[1] / "worker" / "player.py"

LONGEST_BLOCK_SECONDS = 600.0

MOST_CHARACTERS = 2000
"""Longest reason that is kept."""


@dataclass(frozen=True)
class Place:
    """Where one side's processes run."""

    checkout: Path
    pythons: Mapping[str, tuple[Path, bool]]
    """Interpreter of a cell -> the Python of the side's environment, and whether it has a JIT."""


Play = Callable[[Mapping[str, Any], Limits], dict[str, Any]]
"""Play one block and return its reply. Tests replace it."""


def play(job: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Play a block in processes of their own, within limits. Any failure becomes a reply."""
    with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
        job_file, reply_file = Path(folder) / "job.json", Path(folder) / "reply.json"
        for side, its in job["sides"].items():
            its["layout"]["objects"] = str(Path(folder) / side)
            (Path(folder) / side).mkdir()
        job_file.write_text(json.dumps({**job, "reply_file": str(reply_file)}), encoding="utf-8")
        environment = {**job["sides"]["base"]["environment"], "PYTHONPATH": str(importable())}
        command = [sys.executable, "-m", "zoomgrad.harness.compare.block", str(job_file)]
        finished = run(command, environment, folder, limits)
        if finished.code is None:
            return {"failed": limits.reply(finished.limit)["reason"], "side": ""}
        with contextlib.suppress(OSError, ValueError):
            reply = json.loads(reply_file.read_bytes()[: 1 << 22])
            if isinstance(reply, dict):
                if "its process ended" in str(reply.get("failed")) and finished.output:
                    reply["failed"] = f"{reply['failed']}: {finished.output.splitlines()[-1]}"
                return reply
        return {"failed": f"the block ended without figures: {finished.output or 'no output'}", "side": ""}


@dataclass
class Comparison:
    """A comparison in progress."""

    plan: Plan
    places: Mapping[str, Place]
    """By side."""
    told: Callable[[str, Sequence[Verdict]], None]
    """Receives a line on the last block, and what is known so far."""
    keep: Callable[[BaseModel], None] = lambda block: None
    """Writes a block or an absence to the disk."""
    play: Play = play
    limits: Limits = field(default_factory=lambda: Limits(LONGEST_BLOCK_SECONDS))
    clock: Callable[[], float] = time.monotonic
    until: float = math.inf
    """When the time is up, on that clock."""
    blocks: list[Block] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    _steps: dict[Cell, int] = field(default_factory=dict)

    def verdicts(self) -> list[Verdict]:
        """What is known so far."""
        return verdicts(self.plan, self.blocks, self.absences)

    def measure(self) -> None:
        """Play blocks until every cell and every mean has a verdict, or the time is up.

        Raises Unreadable if no cell has figures: a commit does not build, or no engine runs here.
        """
        longest = 0.0
        cells: Sequence[Cell] = self.plan.cells
        for number in itertools.count():
            rng = random.Random(f"{self.plan.seed} {number}")
            for cell in rng.sample(cells, len(cells)):
                start = self.clock()
                # Everything gets one block, so that a short time limit still finds out what fails.
                if number and start + longest > self.until:
                    return
                self._block(cell, number)
                longest = max(longest, self.clock() - start)
            self._refuse_hopeless()
            cells = undecided(self.verdicts())
            if not cells:
                return

    def _block(self, cell: Cell, number: int) -> None:
        started_at, start = datetime.now(UTC), self.clock()
        reply = self._reply(cell, number)
        seconds = self.clock() - start
        if "failed" not in reply:
            try:
                sides = {side: reply[side] for side in SIDES}
                block = Block(
                    cell=cell,
                    block=number,
                    started_at=started_at,
                    seconds=max(0.0, seconds),
                    steps=reply["steps"],
                    layouts=reply.get("layouts", 1),
                    **sides,
                )
            except (ValidationError, KeyError) as error:
                wrong = first_of(error) if isinstance(error, ValidationError) else f"no {error}"
                reply = {"failed": f"its figures are out of range: {wrong}", "side": ""}
            else:
                self._steps.setdefault(cell, block.steps)
                self.blocks.append(block)
                self.keep(block)
                self.told(f"{self.plan.subject(cell)} block {number + 1}", self.verdicts())
                return
        side = reply.get("side")
        side = side if side in (*SIDES, "both") else ""
        reason = str(reply["failed"])[:MOST_CHARACTERS].strip() or "no reason given"
        absence = Absence.model_validate({"cell": cell, "side": side, "reason": reason})
        self.absences.append(absence)
        self.keep(absence)
        where = f" on {side}" if side else ""
        self.told(f"{self.plan.subject(cell)} block {number + 1}: no result{where}: {absence.reason}", self.verdicts())

    def _refuse_hopeless(self) -> None:
        if self.blocks:
            return
        first = self.absences[0]
        side = {"base": self.plan.base, "head": self.plan.head}.get(first.side)
        where = f"{side.name} ({side.sha[:12]})" if side and side.sha else side.name if side else "both sides"
        raise Unreadable(
            f"{where}: {self.plan.subject(first.cell)} has no result: {first.reason.splitlines()[-1]}\n"
            "  Nothing could be measured. Try the engine with `zoomgrad run --preset smoke` there."
        )

    def _reply(self, cell: Cell, number: int) -> dict[str, Any]:
        rng = random.Random(f"{self.plan.seed} {number} {cell.key}")
        with contextlib.ExitStack() as stack:
            sides = {}
            # Both sides draw the same, so what is equal in them lies equally.
            drawn = layout.draw(rng)
            padding = stack.enter_context(layout.padding(drawn.code_bytes))
            for side in SIDES:
                place = self.places[side]
                python, _ = place.pythons[cell.interpreter]
                sides[side] = {
                    "engine": cell.engine,
                    "workload": cell.workload,
                    "python": str(python),
                    "player": str(PLAYER),
                    "checkout": str(place.checkout),
                    # Without caches, each process builds its own objects, and the user's cache gets none of them.
                    "environment": {
                        **worker_environment(drawn.draw),
                        "PYTHONPATH": str(place.checkout),
                        "ZOOMGRAD_CACHE": "off",
                    },
                    "layout": drawn.job(padding),
                }
            job = {
                "seed": rng.randrange(2**32),
                "processor": rng.choice(_processors()),
                "steps": self._steps.get(cell, 0),
                "has_jit": any(place.pythons[cell.interpreter][1] for place in self.places.values()),
                "sides": sides,
            }
            return self.play(job, self.limits)


def _processors() -> list[int]:
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
