"""Runs of a folder -> the history of each speedup on each machine, with its changes marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

import pandas as pd

from reports.measured.races import SPEEDUP, Race, machines, names, side_by_side
from reports.measured.table import KEYS, each, in_order
from reports.text.figures import Figure, Section, Sheet, ratio
from reports.text.runs import sheet_of_runs
from results import units
from results.record import BASELINE, Run
from results.stats.changepoints import Level, levels, spread
from results.stats.intervals import Interval

_LEAD = (
    f"Speedups over {BASELINE} on the same interpreter, each computed within its own run. A level is a stretch of runs "
    "that differ only by noise. A change is the ratio of a level to the previous one on the same machine. PELT finds "
    "changepoints in the logarithms: steps too large for chance. Machines with the same processor, cores and system "
    f"count as one. If {BASELINE} itself changed, every speedup changed with it."
)


_READING = (
    "A strip shows an engine. A mark is the speedup in one run, and the bar through it its interval; a hollow mark has "
    "no interval. A horizontal line is a level, from which runs differ only by noise. A vertical line is a change, "
    "labelled with the ratio of the new level to the old."
)


@dataclass(frozen=True)
class Change:
    """A level of one series that differs from the previous one."""

    engine: str
    interpreter: str
    workload: str
    machine: str
    run: str
    """The first run of the new level."""
    commit: str
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """New over old."""
        return self.after / self.before


@dataclass(frozen=True)
class Part:
    """One machine's runs of one workload on one interpreter."""

    machine: str
    """Heading above the part: the machine and its processor."""
    title: str
    rows: pd.DataFrame
    """One row per engine and run, with its `place` among the machine's runs, the `level` it belongs to, and `change`:
    NaN unless that level begins here and differs from the previous one."""
    sheet: Sheet
    """The figures behind the chart: one row per engine, one column per run."""


@dataclass(frozen=True)
class History:
    """Contents of the history page."""

    lead: str
    findings: tuple[str, ...]
    changes: tuple[Change, ...]
    """Newest first."""
    sections: tuple[Section, ...]
    parts: tuple[Part, ...]
    reading: str
    """How to read the parts' charts."""
    runs: Section


def history(races: Iterable[Race], left_out: Sequence[str] = ()) -> History | None:
    """Build the history of these runs, given in any order; None if no cell was measured twice on one machine.

    left_out: folders that the history omits, with the reason.
    """
    races = sorted(races, key=lambda one: (one.run.created_at, one.run.id))
    runs = [one.run for one in races]
    table = _with_levels(side_by_side(races))
    if table.empty:
        return None
    several = len(set(machines(runs))) > 1
    changes = tuple(_changes(table, runs))
    series = len(table.drop_duplicates([*KEYS, "machine"]))
    return History(
        _lead(runs),
        tuple(_findings(changes, series, several)),
        changes,
        (_section(changes, several),) if changes else (),
        tuple(_parts(table, _machines_said(runs))),
        _READING,
        Section("runs", "Runs", "", (replace(sheet_of_runs(runs), title="", notes=tuple(left_out)),)),
    )


def latest(changes: Iterable[Change]) -> list[Change]:
    """Return the newest change of each series. changes: newest first."""
    found: dict[tuple[str, ...], Change] = {}
    for one in changes:
        found.setdefault((one.engine, one.interpreter, one.workload, one.machine), one)
    return list(found.values())


def _with_levels(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the series that have two runs or more, and add place, level and change."""
    table = table[table.duplicated([*KEYS, "machine"], keep=False)].sort_values("run")
    grouped = table.groupby([*KEYS, "machine"], observed=True, sort=False)
    series = {
        key: [Interval(*bounds) for bounds in zip(*(rows[x] for x in SPEEDUP), strict=True)] for key, rows in grouped
    }
    spreads: dict[Any, list[float]] = {}
    for key, one in series.items():
        spreads.setdefault(key[-1], []).append(spread(one))
    usual = {machine: median(found) for machine, found in spreads.items()}
    parts = []
    for key, rows in grouped:
        found = levels(series[key], max(spread(series[key]), usual[key[-1]]))
        parts.append(rows.assign(**_columns(found)))
    table = pd.concat(parts) if parts else table.assign(level=[], change=[])
    places = {
        (machine, run): place
        for machine, rows in table.groupby("machine", sort=False)
        for place, run in enumerate(in_order(rows, "run"))
    }
    return table.assign(place=[places[row.machine, row.run] for row in each(table)])


def _columns(found: Sequence[Level]) -> dict[str, list[float]]:
    level = [one.speedup for one in found for _ in range(one.begin, one.end)]
    change = [float("nan")] * len(level)
    for before, after in pairwise(found):
        change[after.begin] = after.speedup / before.speedup
    return {"level": level, "change": change}


def _changes(table: pd.DataFrame, runs: Sequence[Run]) -> Iterator[Change]:
    commits = dict(zip(names(runs), (run.commit for run in runs), strict=True))
    changed = table[table["change"].notna()].sort_values(["workload", "interpreter", "engine"])
    for row in each(changed.sort_values("run", ascending=False, kind="stable")):
        yield Change(
            *(str(row.engine), str(row.interpreter), str(row.workload), str(row.machine), str(row.run)),
            *(commits[str(row.run)], row.level / row.change, row.level),
        )


def _lead(runs: Sequence[Run]) -> str:
    first, last = (f"{run.created_at:%Y-%m-%d %H:%M %Z}" for run in (runs[0], runs[-1]))
    where = units.count(len(set(machines(runs))), "machine")
    return f"{units.count(len(runs), 'run')} of {where}, {first} to {last}"


def _findings(changes: Sequence[Change], series: int, several: bool) -> Iterator[str]:
    cells = units.count(series, "speedup")
    if not changes:
        yield f"None of {cells} changed by more than chance."
        return
    newest = latest(changes)
    yield f"{len(newest)} of {cells} changed, {'most recently ' if len(newest) > 1 else ''}in {changes[0].run}."
    for word, found in (("gain", max(newest, key=_ratio)), ("loss", min(newest, key=_ratio))):
        if (found.ratio > 1) == (word == "gain"):
            yield f"The largest {word} that still holds is {_said(found, several)}."


def _ratio(change: Change) -> float:
    return change.ratio


def _said(change: Change, several: bool) -> str:
    place = f"{change.interpreter}, {change.workload}{f', {change.machine}' if several else ''}"
    became = f"{units.ratio(change.before)} became {units.ratio(change.after)}"
    return f"{change.engine}'s on {place}: {became} with {change.run}"


def _section(changes: Sequence[Change], several: bool) -> Section:
    headings = ("engine", "interpreter", "workload", *(["machine"] if several else []), "since", "change", "speedup")
    rows = tuple(
        (
            *map(Figure, (one.engine, one.interpreter, one.workload)),
            *([Figure(one.machine.removeprefix("machine "))] if several else []),
            Figure(one.run, one.commit),
            change_figure(one),
            Figure(units.ratio(one.after), f"before: {units.ratio(one.before)}"),
        )
        for one in changes
    )
    return Section("changes", "Changes, newest first", _LEAD, (Sheet("", len(headings) - 2, headings, rows),))


def change_figure(change: Change) -> Figure:
    """Format a change: `2× faster`."""
    word = "faster" if change.ratio > 1 else "slower"
    return Figure(f"{units.ratio(change.ratio)} {word}", mark="" if change.ratio > 1 else "different")


def _machines_said(runs: Sequence[Run]) -> dict[str, str]:
    """Return each machine's heading: its name and processor if there are several machines."""
    processors = dict(zip(machines(runs), (run.machine.get("processor", "") for run in runs), strict=True))
    if len(processors) == 1:
        return dict.fromkeys(processors, "From run to run")
    return {name: f"{name.capitalize()}{f': {text}' if text else ''}" for name, text in processors.items()}


def _parts(table: pd.DataFrame, said: dict[str, str]) -> Iterator[Part]:
    for machine in dict.fromkeys(table.sort_values("run")["machine"]):
        of_machine = table[table["machine"] == machine]
        for workload in in_order(of_machine, "workload"):
            of_workload = of_machine[of_machine["workload"] == workload]
            for interpreter in in_order(of_workload, "interpreter"):
                rows = of_workload[of_workload["interpreter"] == interpreter].sort_values(["engine", "run"])
                title = f"{workload} on {interpreter}{f', {machine}' if len(said) > 1 else ''}"
                yield Part(said[machine], title, rows, _every_run(rows))


def _every_run(rows: pd.DataFrame) -> Sheet:
    runs = in_order(rows, "run")
    found = {(row.engine, row.run): ratio(row, "speedup") for row in each(rows)}
    lines = tuple(
        (Figure(engine), *(found.get((engine, run), Figure(units.ABSENT)) for run in runs))
        for engine in in_order(rows, "engine")
    )
    return Sheet("every speedup", 1, ("engine", *runs), lines, folded=True)
