"""Table -> break-even points: the number of images after which an engine that is slow to compile pays off.

Total time is compile time, all phases, plus the time of every image trained: a straight line over the number of images.
Only engines on the lower envelope of an interpreter's lines are worth choosing; at any number of images, one of them
has the least total time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from zoomgrad.reports.measured.outcome import IDENTICAL
from zoomgrad.reports.measured.table import each, in_order, measured, racing
from zoomgrad.reports.text.figures import Figure, Section, Sheet, compile_time
from zoomgrad.results import units

IMAGES = ("digits", "mnist")
"""Workloads and workload families whose samples are images."""
AT_ONCE = 1
"""Break-even point of an engine that leads from the first image."""
NEVER = math.inf

_LEAD = (
    "The engine with the least total time for each length of training, and the image (or other sample) from which it "
    "leads. Total time is compile time, all phases, plus the time of every sample trained. It is computed from medians "
    "over processes, so no figure here has an interval. Counts marked ≈ are estimates from these medians, to two "
    "significant figures; between engines that take about the same time per sample they are mostly noise."
)


@dataclass(frozen=True)
class Cost:
    """Compile time and time per image of one engine on one interpreter and workload."""

    engine: str
    caveat: str
    """What a non-strict engine promises instead of identical bits; empty for a strict engine."""
    compile_seconds: float
    image_seconds: float

    def total_seconds(self, images: float) -> float:
        return self.compile_seconds + images * self.image_seconds


@dataclass(frozen=True)
class Winner:
    """The engine with the least total time from `images` images on, until the next winner takes over."""

    cost: Cost
    images: int


def break_even(table: pd.DataFrame) -> Section | None:
    """By workload, the sequence of winners; None if no engine that compiles has a rival.

    Only engines with a result and a compile time count. An interrupted run can lose a cell's compile time.
    """
    sheets = [sheet for workload in in_order(table, "workload") for sheet in _of_workload(table, workload)]
    return Section("break-even", "Break-even", _LEAD, tuple(sheets)) if sheets else None


def costs(rows: pd.DataFrame, interpreter: str) -> list[Cost]:
    """Return the costs of one workload's rows on one interpreter, in the run's order of engines."""
    rows = measured(rows[rows["interpreter"] == interpreter])
    rows = rows[rows["compile_seconds"].notna() & rows["sample_seconds"].notna()].sort_values("engine", kind="stable")
    return [
        Cost(
            str(row.engine),
            "" if row.promise == IDENTICAL else str(row.promise),
            float(row.compile_seconds),
            float(row.sample_seconds),
        )
        for row in each(rows)
    ]


def samples_an_epoch(rows: pd.DataFrame) -> float:
    """Return the samples per epoch in one workload's rows; NaN if no epoch was measured."""
    return float((rows["epoch_seconds"] / rows["sample_seconds"]).round().max())


def overtakes(one: Cost, other: Cost) -> float:
    """Return the number of images from which `one` stays ahead of `other` in total time.

    A whole number, at least `AT_ONCE`. `NEVER` if `one` loses its lead or never has one; equal engines never lead.
    """
    later, faster = one.compile_seconds - other.compile_seconds, other.image_seconds - one.image_seconds
    if faster < 0 or (faster == 0 and later >= 0):
        return NEVER
    if later <= 0:
        return AT_ONCE
    crossing = later / faster
    # At the crossing itself the totals are equal.
    return math.floor(crossing) + 1 if math.isfinite(crossing) else NEVER


def winners(found: Sequence[Cost]) -> list[Winner]:
    """Return the lower envelope from the first image on: each winner has the least total time until the next one.

    If engines are equal, the first one given wins.
    """
    sequence: list[Winner] = []
    images, faster = float(AT_ONCE), list(found)
    while faster and images < NEVER:
        best = min(faster, key=lambda cost: (cost.total_seconds(images), cost.image_seconds))
        sequence.append(Winner(best, int(images)))
        faster = [cost for cost in faster if cost.image_seconds < best.image_seconds]
        images = min((overtakes(cost, best) for cost in faster), default=NEVER)
    return sequence


def noun(workload: str) -> str:
    """Return the word for a sample of the workload: image or sample."""
    return "image" if workload.partition("-")[0] in IMAGES else "sample"


def about(images: float) -> str:
    """Format an estimated count to two significant figures: ≈ 41,000."""
    return f"≈ {units.significant(images, 2) if images >= 10 else f'{images:.0f}'}"


def _of_workload(table: pd.DataFrame, workload: str) -> list[Sheet]:
    rows = table[table["workload"] == workload]
    by_interpreter = {interpreter: costs(rows, interpreter) for interpreter in in_order(rows, "interpreter")}
    rivals = {
        interpreter: found
        for interpreter, found in by_interpreter.items()
        if len(found) > 1 and any(cost.compile_seconds > 0 for cost in found)
    }
    if not rivals:
        return []
    one = noun(workload)
    leads = {interpreter: winners(costs(racing(rows), interpreter)) for interpreter in rivals}
    each_one = "an image" if one == "image" else "a sample"
    sequence = Sheet(
        title=workload,
        names=2,
        headings=("interpreter", "engine", f"from {one}", "compile", each_one),
        rows=tuple(_winner(interpreter, winner) for interpreter, found in leads.items() for winner in found),
    )
    return [sequence]


def _winner(interpreter: str, winner: Winner) -> tuple[Figure, ...]:
    cost = winner.cost
    return (
        Figure(interpreter),
        Figure(cost.engine, cost.caveat),
        Figure(str(AT_ONCE) if winner.images == AT_ONCE else about(winner.images)),
        Figure(compile_time(cost.compile_seconds)),
        Figure(units.duration(cost.image_seconds)),
    )
