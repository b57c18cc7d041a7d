"""Runs of a folder -> one table of speedups on each machine with their last change, and the rows of one chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import pandas as pd

from zoomgrad.reports.measured.races import SPEEDUP, Race, machines, names, side_by_side
from zoomgrad.reports.measured.table import KEYS, each, in_order
from zoomgrad.reports.text.figures import Figure, Sheet
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE, Run
from zoomgrad.results.stats.changepoints import Level, levels, spread
from zoomgrad.results.stats.intervals import Interval

_NOTE = (
    f"Speedups over {BASELINE} on the same interpreter, each within its own run. A change is the newest level over the "
    "one before, on one machine; PELT finds steps too large for chance. Machines with the same processor, cores and "
    f"system count as one. If {BASELINE} itself changed, every speedup changed with it."
)
_HEADINGS = ("engine", "interpreter", "workload", "machine", "runs", "since", "change", "speedup")


@dataclass(frozen=True)
class History:
    """Contents of the history."""

    lead: str
    finding: str
    sheet: Sheet
    """One row for each engine, interpreter, workload and machine; newest change first."""
    chart: pd.DataFrame
    """Series of one workload and interpreter on the newest run's machine: one row per engine and run, with its `place`
    among the machine's runs, the `level` it belongs to, and `change`: NaN unless that level begins here and differs
    from the previous one."""


def history(races: Iterable[Race], left_out: Sequence[str] = ()) -> History | None:
    """Build the history of these runs, in any order; None if no cell was measured twice on one machine.

    left_out: folders that the history omits, with the reason.
    """
    races = sorted(races, key=lambda one: (one.run.created_at, one.run.id))
    runs = [one.run for one in races]
    table = _with_levels(side_by_side(races))
    if table.empty:
        return None
    series = sorted(_series(table), key=_newest_change, reverse=True)
    changed = [rows for rows in series if rows["change"].notna().any()]
    finding = f"{len(changed)} of {units.count(len(series), 'speedup')} changed by more than chance."
    commits = dict(zip(names(runs), (run.commit for run in runs), strict=True))
    notes = (_NOTE, *_machines_said(runs), *left_out)
    sheet = Sheet("", 4, _HEADINGS, tuple(_row(rows, commits) for rows in series), notes)
    return History(_lead(runs), finding, sheet, _charted(table))


def _with_levels(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the series that have two runs or more, and add place, level and change."""
    table = table[table.duplicated([*KEYS, "machine"], keep=False)].sort_values("run")
    grouped = table.groupby([*KEYS, "machine"], observed=True, sort=False)
    series = {
        key: [Interval(*bounds) for bounds in zip(*(rows[x] for x in SPEEDUP), strict=True)] for key, rows in grouped
    }
    spreads = {key: spread(one) for key, one in series.items()}
    parts = []
    for key, rows in grouped:
        usual = median(one for other, one in spreads.items() if other[-1] == key[-1])
        parts.append(rows.assign(**_columns(levels(series[key], max(spreads[key], usual)))))
    table = pd.concat(parts) if parts else table.assign(level=[], change=[])
    places = {
        (machine, run): place
        for machine, rows in table.groupby("machine", sort=False)
        for place, run in enumerate(in_order(rows, "run"))
    }
    return table.assign(place=[places[row.machine, row.run] for row in each(table)])


def _columns(levels: Sequence[Level]) -> dict[str, list[float]]:
    level = [one.speedup for one in levels for _ in range(one.begin, one.end)]
    change = [float("nan")] * len(level)
    for before, after in pairwise(levels):
        change[after.begin] = after.speedup / before.speedup
    return {"level": level, "change": change}


def _series(table: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for _, rows in table.sort_values([*KEYS, "machine", "run"]).groupby([*KEYS, "machine"], observed=True, sort=False):
        yield rows


def _newest_change(rows: pd.DataFrame) -> int:
    """Position of the run with the newest change among all runs; -1 without a change."""
    changed = rows[rows["change"].notna()]
    return -1 if changed.empty else int(changed["run"].cat.codes.iloc[-1])


def _row(rows: pd.DataFrame, commits: dict[str, str]) -> tuple[Figure, ...]:
    last, changed = rows.iloc[-1], rows[rows["change"].notna()]
    start = (
        *(Figure(str(last[key])) for key in KEYS),
        Figure(str(last["machine"]).removeprefix("machine ")),
        Figure(f"{len(rows)}"),
    )
    if changed.empty:
        return (*start, Figure(units.ABSENT), Figure(units.ABSENT), Figure(units.ratio(float(last["level"]))))
    newest = changed.iloc[-1]
    ratio, level = float(newest["change"]), float(newest["level"])
    return (
        *start,
        Figure(str(newest["run"]), commits[str(newest["run"])]),
        Figure(f"{units.ratio(ratio)} {'faster' if ratio > 1 else 'slower'}", mark="" if ratio > 1 else "different"),
        Figure(units.ratio(level), f"before: {units.ratio(level / ratio)}"),
    )


def _lead(runs: Sequence[Run]) -> str:
    first, last = (f"{run.created_at:%Y-%m-%d %H:%M %Z}" for run in (runs[0], runs[-1]))
    where = units.count(len(set(machines(runs))), "machine")
    return f"{units.count(len(runs), 'run')} of {where}, {first} to {last}."


def _machines_said(runs: Sequence[Run]) -> list[str]:
    """Name each machine's processor."""
    processors = dict(zip(machines(runs), (run.machine.get("processor", "") for run in runs), strict=True))
    return [f"{name}: {processor or 'unknown'}" for name, processor in processors.items()]


def _charted(table: pd.DataFrame) -> pd.DataFrame:
    """The workload and interpreter with most changes, then with most results, on the newest run's machine."""
    newest = table.sort_values("run")["machine"].iloc[-1]
    here = table[table["machine"] == newest]
    parts: list[pd.DataFrame] = [rows for _, rows in here.groupby(["workload", "interpreter"], observed=True)]
    return max(parts, key=lambda rows: (rows["change"].notna().sum(), len(rows))).sort_values(["engine", "run"])
