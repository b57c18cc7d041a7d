"""Table -> break-even points: the number of samples after which an engine that is slow to compile pays off.

Total time is compile time, all phases, plus the time of every sample trained: a straight line over the number of
samples. Only engines on the lower envelope of an interpreter's lines are worth choosing; at any number of samples, one
of them has the least total time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from zoomgrad.reports.measured.table import each, measured
from zoomgrad.results import units

IMAGES = ("digits", "mnist")
"""Workloads and workload families whose samples are images."""
NEVER = math.inf


@dataclass(frozen=True)
class Cost:
    """Compile time and time per sample of one engine on one interpreter and workload."""

    engine: str
    compile_seconds: float
    sample_seconds: float

    def total_seconds(self, samples: float) -> float:
        return self.compile_seconds + samples * self.sample_seconds


@dataclass(frozen=True)
class Winner:
    """The engine with the least total time from `samples` samples on, until the next winner takes over."""

    cost: Cost
    samples: int


def costs(rows: pd.DataFrame, interpreter: str) -> list[Cost]:
    """Return the costs of one workload's rows on one interpreter, in the run's order of engines."""
    rows = measured(rows[rows["interpreter"] == interpreter])
    rows = rows[rows["compile_seconds"].notna() & rows["sample_seconds"].notna()].sort_values("engine", kind="stable")
    return [Cost(str(row.engine), float(row.compile_seconds), float(row.sample_seconds)) for row in each(rows)]


def samples_an_epoch(rows: pd.DataFrame) -> float:
    """Return the samples per epoch in one workload's rows; NaN if no epoch was measured."""
    return float((rows["epoch_seconds"] / rows["sample_seconds"]).round().max())


def overtakes(one: Cost, other: Cost) -> float:
    """Return the number of samples from which `one` stays ahead of `other` in total time.

    A whole number, at least 1. `NEVER` if `one` loses its lead or never has one; equal engines never lead.
    """
    later, faster = one.compile_seconds - other.compile_seconds, other.sample_seconds - one.sample_seconds
    if faster < 0 or (faster == 0 and later >= 0):
        return NEVER
    if later <= 0:
        return 1
    crossing = later / faster
    # At the crossing itself the totals are equal.
    return math.floor(crossing) + 1 if math.isfinite(crossing) else NEVER


def winners(rivals: Sequence[Cost]) -> list[Winner]:
    """Return the lower envelope from the first sample on: each winner has the least total time until the next one.

    If engines are equal, the first one wins.
    """
    sequence: list[Winner] = []
    samples, faster = 1.0, list(rivals)
    while faster and samples < NEVER:
        best = min(faster, key=lambda cost: (cost.total_seconds(samples), cost.sample_seconds))
        sequence.append(Winner(best, int(samples)))
        faster = [cost for cost in faster if cost.sample_seconds < best.sample_seconds]
        samples = min((overtakes(cost, best) for cost in faster), default=NEVER)
    return sequence


def noun(workload: str) -> str:
    """Return the word for a sample of the workload: image or sample."""
    return "image" if workload.partition("-")[0] in IMAGES else "sample"


def about(samples: float) -> str:
    """Format an estimated count to two significant figures: 41,000."""
    return units.significant(samples, 2) if samples >= 10 else f"{samples:.0f}"
