"""Runs -> one row a cell and run: the only module that puts runs side by side.

Speedups are all that leaves a run. They are ratios within it, and may be set against those of another run and of
another machine; seconds stay behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from reports.measured.table import KEYS, cells, measured
from results.comparability import same_machine, unlike_settings
from results.record import BASELINE, Record, Run

SPEEDUP = ("speedup", "speedup_low", "speedup_high")
NEEDED = f"A speedup needs {BASELINE} beside other engines, on the same interpreter and workload."


@dataclass(frozen=True)
class Race:
    """A run and its table, of `reports.measured.table.cells`."""

    run: Run
    table: pd.DataFrame


def race(run: Run, records: Iterable[Record]) -> Race:
    """A run's race."""
    return Race(run, cells(timed(run), records))


def timed(run: Run) -> Run:
    """The run with the cells that it planned to time: none without blocks, since its cells are those to be profiled."""
    return run if run.blocks else run.model_copy(update={"cells": ()})


def same_run(one: Run, other: Run) -> bool:
    """Whether both are the same run, wherever they are kept; two machines may have begun one in the same second."""
    return (one.id, one.created_at, one.seed) == (other.id, other.created_at, other.seed)


def speedups(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a run that have a speedup over another engine; keys as text, since runs differ in categories."""
    rows = measured(table)
    rows = rows[(rows["engine"] != BASELINE) & rows["speedup"].notna()]
    return rows[[*KEYS, *SPEEDUP]].astype(dict.fromkeys(KEYS, str))


def side_by_side(races: Sequence[Race]) -> pd.DataFrame:
    """One row a cell and run that has a speedup: keys, `run`, `machine` and the speedup.

    Keys are ordered categories in the order of the first run that has them; runs, by `names`, in the order given.
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
    """A name for each run: its id, with a number where two machines began one in the same second."""
    given: list[str] = []
    for run in runs:
        twins = sum(other.id == run.id for other in runs[: len(given)])
        given.append(f"{run.id} ({twins + 1})" if twins else run.id)
    return given


def machines(runs: Sequence[Run]) -> list[str]:
    """The machine of each run, numbered as they come, and what was set otherwise than in the first run there.

    Nothing is known of a machine without facts: it is no other.
    """
    known: list[Run] = []
    found: list[str] = []
    for run in runs:
        number = next((n for n, other in enumerate(known, 1) if same_machine(run.machine, other.machine)), 0)
        if not number:
            known.append(run)
            number = len(known)
        # Values that are longer, or come later, are other figures: those runs are no repetition of the others.
        unlike = unlike_settings(run, known[number - 1])
        found.append(f"machine {number}" + (f", {'; '.join(unlike)}" if unlike else ""))
    return found
