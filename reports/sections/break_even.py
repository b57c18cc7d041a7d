"""Table -> after how many images an engine that is slow to compile is worth it: who has the least total time, and when.

The total is compile time, all phases, and the time of every image trained since: a straight line over the images. The
engines to choose from are those on the lower envelope of an interpreter's lines; all others lose to one of them
however many images are trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from reports.measured.outcome import IDENTICAL
from reports.measured.table import each, in_order, measured
from reports.text.figures import Figure, Section, Sheet, compile_time
from results import units

IMAGES = ("digits", "mnist")
"""Workloads, and families of them, whose samples are images."""
AT_ONCE = 1
"""Of a lead from the first image on."""
NEVER = math.inf

_LEAD = (
    "Which engine to choose for how long a training: the one with the least total time, and from which image or other "
    "sample on. The total is compile time, all phases, and the time of every sample trained since, from medians over "
    "processes: no figure here has an interval. Counts marked ≈ are estimates from these medians, to two significant "
    "figures; between engines that take about as long a sample they are mostly noise."
)


@dataclass(frozen=True)
class Cost:
    """What one engine takes on one interpreter and workload."""

    engine: str
    caveat: str
    """What an engine that is not strict promises instead of identical bits; empty for a strict one."""
    compile_seconds: float
    image_seconds: float

    def total_seconds(self, images: float) -> float:
        return self.compile_seconds + images * self.image_seconds


@dataclass(frozen=True)
class Winner:
    """The engine with the least total time from so many images on, until the next one's."""

    cost: Cost
    images: int


def break_even(table: pd.DataFrame) -> Section | None:
    """Sequences of winners, then engines against engines, by workload; None where no engine that compiles has a rival.

    Engines count where they have a result, and a compile time that was not lost with an interrupted run.
    """
    sheets = [sheet for workload in in_order(table, "workload") for sheet in _of_workload(table, workload)]
    return Section("break-even", "Break-even", _LEAD, tuple(sheets)) if sheets else None


def costs(rows: pd.DataFrame, interpreter: str) -> list[Cost]:
    """The costs of one workload's rows on one interpreter, in the run's order of engines."""
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
    """Of one workload's rows; NaN where no epoch was measured."""
    return float((rows["epoch_seconds"] / rows["sample_seconds"]).round().max())


def overtakes(one: Cost, other: Cost) -> float:
    """Images from which on `one` has taken less time than `other`, for good.

    A whole number, at least `AT_ONCE`; `NEVER` where it loses its lead or has none, as against its equal.
    """
    later, faster = one.compile_seconds - other.compile_seconds, other.image_seconds - one.image_seconds
    if faster < 0 or (faster == 0 and later >= 0):
        return NEVER
    if later <= 0:
        return AT_ONCE
    crossing = later / faster
    # At the crossing itself both have taken as long.
    return math.floor(crossing) + 1 if math.isfinite(crossing) else NEVER


def winners(found: Sequence[Cost]) -> list[Winner]:
    """The lower envelope from the first image on: at any number of images the last winner so far has the least total.

    Of equal ones the first given.
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
    """What a sample of that workload is."""
    return "image" if workload.partition("-")[0] in IMAGES else "sample"


def about(images: float) -> str:
    """An estimated count, to two significant figures: ≈ 41,000."""
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
    each_one = "an image" if one == "image" else "a sample"
    sequence = Sheet(
        title=workload,
        names=2,
        headings=("interpreter", "engine", f"from {one}", "compile", each_one),
        rows=tuple(_winner(interpreter, winner) for interpreter, found in rivals.items() for winner in winners(found)),
    )
    return [sequence, *(_matrix(workload, interpreter, found) for interpreter, found in rivals.items())]


def _winner(interpreter: str, winner: Winner) -> tuple[Figure, ...]:
    cost = winner.cost
    return (
        Figure(interpreter),
        Figure(cost.engine, cost.caveat),
        Figure(str(AT_ONCE) if winner.images == AT_ONCE else about(winner.images)),
        Figure(compile_time(cost.compile_seconds)),
        Figure(units.duration(cost.image_seconds)),
    )


def _matrix(workload: str, interpreter: str, found: Sequence[Cost]) -> Sheet:
    return Sheet(
        title=f"{workload} on {interpreter}: when the engine of a row overtakes that of a column",
        names=1,
        headings=("engine", *(cost.engine for cost in found)),
        rows=tuple((Figure(row.engine, row.caveat), *(_entry(row, column) for column in found)) for row in found),
        notes=(
            f"From how many {noun(workload)}s on the row's engine has taken less time than the column's. “at once”: "
            "from the first. “never”: not for good, however many there are.",
        ),
        folded=True,
    )


def _entry(row: Cost, column: Cost) -> Figure:
    if row is column:
        return Figure(units.ABSENT)
    images = overtakes(row, column)
    if images == NEVER:
        return Figure("never", mark="never")
    return Figure("at once" if images == AT_ONCE else about(images))
