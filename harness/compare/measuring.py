"""Plan of a comparison -> blocks, until each cell has a verdict or the time is up.

Each round plays one block of every cell that has no verdict yet, in shuffled order. A cell that fails on either side is
left out, with the reason.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zoomgrad.harness.compare import block, layout
from zoomgrad.harness.compare.block import Failed, Job
from zoomgrad.harness.compare.sides import Place
from zoomgrad.harness.compare.turns import Absence, Block, Outcome, Plan, undecided, verdicts
from zoomgrad.results.files import Unreadable, first_of
from zoomgrad.results.record import Cell

MOST_CHARACTERS = 2000
"""Longest reason that is kept."""


Play = Callable[[Job], dict[str, Any]]
"""Play one block and return each side's figures. Raises Failed. Tests replace it."""


def measure(
    plan: Plan,
    places: Mapping[str, Place],
    until: float,
    log: Path,
    play: Play = block.play,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Outcome]:
    """Yield blocks until every cell has a verdict on each figure, or the time is up.

    places: by side. until: when the time is up, on the clock. log: file for the plan and the outcomes, a line each.
    Raises Unreadable if no cell has figures: a commit does not build, or no engine runs here.
    """
    _append(log, plan)
    outcomes: list[Outcome] = []
    steps: dict[Cell, int] = {}
    longest = 0.0
    cells: Sequence[Cell] = plan.cells
    for number in itertools.count():
        for cell in random.Random(f"{plan.seed} {number}").sample(cells, len(cells)):
            start, started_at = clock(), datetime.now(UTC)
            # Everything gets one block, so that a short time limit still finds out what fails.
            if number and start + longest > until:
                return
            rng = random.Random(f"{plan.seed} {number} {cell.key}")
            with layout.drawn(rng) as drawn:
                figures = _played(Job(cell, places, drawn, rng.randrange(2**32), steps.get(cell, 0)), play)
            seconds = max(0.0, clock() - start)
            longest = max(longest, seconds)
            about = {"cell": cell, "block": number, "started_at": started_at, "seconds": seconds}
            outcome = figures if isinstance(figures, Absence) else _block({**figures, **about})
            if isinstance(outcome, Block):
                steps.setdefault(cell, outcome.steps)
            _append(log, outcome)
            outcomes.append(outcome)
            yield outcome
        _refuse_hopeless(plan, outcomes)
        cells = undecided(verdicts(plan, outcomes))
        if not cells:
            return


def _played(job: Job, play: Play) -> dict[str, Any] | Absence:
    try:
        return play(job)
    except Failed as failed:
        reason = str(failed)[:MOST_CHARACTERS].strip() or "no reason given"
        return Absence.model_validate({"cell": job.cell, "side": failed.side, "reason": reason})


def _block(figures: dict[str, Any]) -> Outcome:
    """The block, validated: its figures come from an engine, which may be anybody's code."""
    try:
        return Block.model_validate(figures)
    except ValidationError as error:
        return Absence(cell=figures["cell"], reason=f"its figures are out of range: {first_of(error)}")


def _append(log: Path, one: Plan | Outcome) -> None:
    """Add a line of JSON, and flush it to the disk."""
    with log.open("ab") as lines:
        lines.write(f'{{"{type(one).__name__.lower()}":{one.model_dump_json()}}}\n'.encode())
        lines.flush()
        os.fsync(lines.fileno())


def _refuse_hopeless(plan: Plan, outcomes: Sequence[Outcome]) -> None:
    first = outcomes[0]
    if isinstance(first, Block) or any(isinstance(one, Block) for one in outcomes):
        return
    where = {"base": plan.base, "head": plan.head}.get(first.side, "both sides")
    raise Unreadable(
        f"{where}: {plan.subject(first.cell)} has no result: {first.reason.splitlines()[-1]}\n"
        "  Nothing could be measured. Try the engine with `zoomgrad run --preset smoke` there."
    )
