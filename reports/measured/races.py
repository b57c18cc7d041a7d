"""Runs -> one row for each cell and run: the only module that puts runs side by side.

It returns only speedups. A speedup is a ratio within one run, so it can be compared with one from another run or
machine; seconds can't.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from zoomgrad.reports.measured.table import KEYS, cells, measured
from zoomgrad.results.comparability import same_machine, unlike_settings
from zoomgrad.results.record import BASELINE, Record, Run

SPEEDUP = ("speedup", "speedup_low", "speedup_high")
NEEDED = f"A speedup needs {BASELINE} and another engine on the same interpreter and workload."


@dataclass(frozen=True)
class Race:
    """A run and its table from `reports.measured.table.cells`."""

    run: Run
    table: pd.DataFrame


def race(run: Run, records: Iterable[Record]) -> Race:
    """Return a run with its table."""
    return Race(run, cells(timed(run), records))


def timed(run: Run) -> Run:
    """Return the run with only the cells that it planned to time. A run without blocks has none: it only profiles."""
    return run if run.blocks else run.model_copy(update={"cells": ()})


def same_run(one: Run, other: Run) -> bool:
    """Whether both are one run, perhaps stored twice. Ids are not enough: two machines may start in the same second."""
    return (one.id, one.created_at, one.seed) == (other.id, other.created_at, other.seed)


def speedups(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a speedup, without the baseline's.

    Keys are text, because each run has its own categories.
    """
    rows = measured(table)
    rows = rows[(rows["engine"] != BASELINE) & rows["speedup"].notna()]
    return rows[[*KEYS, *SPEEDUP]].astype(dict.fromkeys(KEYS, str))


def side_by_side(races: Sequence[Race]) -> pd.DataFrame:
    """Return one row for each cell and run that has a speedup: keys, `run`, `machine` and the speedup.

    Keys are ordered categories, in the order in which the runs introduce them. Runs keep their order; `names`
    names them.
    """
    labels = names([one.run for one in races])
    parts = [
        speedups(one.table).assign(run=label, machine=machine)
        for one, label, machine in zip(races, labels, machines([one.run for one in races]), strict=True)
    ]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*KEYS, *SPEEDUP, "run", "machine"])
    for key in KEYS:
        order = dict.fromkeys(str(name) for one in races for name in one.table[key].cat.categories)
        table[key] = pd.Categorical(table[key], categories=list(order), ordered=True)
    table["run"] = pd.Categorical(table["run"], categories=labels, ordered=True)
    return table


def names(runs: Sequence[Run]) -> list[str]:
    """Name each run by its id, numbered where two machines started one in the same second."""
    labels: list[str] = []
    for run in runs:
        twins = sum(other.id == run.id for other in runs[: len(labels)])
        labels.append(f"{run.id} ({twins + 1})" if twins else run.id)
    return labels


def machines(runs: Sequence[Run]) -> list[str]:
    """Name each run's machine by number, with the settings that differ from the first run on that machine.

    A run without facts of its machine gets a new number.
    """
    known: list[Run] = []
    labels: list[str] = []
    for run in runs:
        number = next((n for n, other in enumerate(known, 1) if same_machine(run.machine, other.machine)), 0)
        if not number:
            known.append(run)
            number = len(known)
        # A run whose values are longer or start later does not repeat the others: it measured something else.
        unlike = unlike_settings(run, known[number - 1])
        labels.append(f"machine {number}" + (f", {'; '.join(unlike)}" if unlike else ""))
    return labels
