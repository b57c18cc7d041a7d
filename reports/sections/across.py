"""Several runs -> their speedups side by side, and whether runs of the same machine agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from reports.measured.headline import status_text
from reports.measured.outcome import MEASURED
from reports.measured.races import NEEDED, SPEEDUP, Race, names, side_by_side
from reports.measured.table import KEYS, each, in_order
from reports.text.figures import Figure, Section, Sheet, ratio
from reports.text.runs import sheet_of_runs
from reports.view import View
from results import units
from results.record import BASELINE

_LEAD = (
    f"Speedups over {BASELINE} on the same interpreter, each computed within its own run; seconds are never compared "
    "across runs. Runs count as made on one machine if processor, cores and system are the same. Such runs agree if "
    "their intervals overlap. If they differ, something changed between them that the interval of a single run cannot "
    f"show: sources, compilers, load, or {BASELINE} itself, which changes every speedup."
)


@dataclass(frozen=True)
class Across:
    """Runs side by side."""

    section: Section
    rows: pd.DataFrame
    """Chart data: one row per engine and run, on the first run's headline workload; `relative` is the speedup over the
    first run's."""


def across(view: View, others: Sequence[Race]) -> Across | None:
    """Put the runs' speedups side by side; None if no cell has a speedup in two runs.

    view: the first run's. That run sets the order of engines and workloads, and the chart shows its headline workload.
    """
    races = [Race(view.run, view.table), *others]
    table = side_by_side(races)
    shared = table[table.duplicated(list(KEYS), keep=False)]
    if shared.empty:
        return None
    sheets = (_runs(races, table), *(_sheet(races, table, workload) for workload in in_order(shared, "workload")))
    return Across(
        Section("across-runs", f"Across {len(races)} runs", f"{_agreed(shared)}{_LEAD}", sheets),
        _relative(view, shared),
    )


def apart(rows: pd.DataFrame) -> list[str]:
    """Return the machines on which one cell's runs differ: their intervals have no point in common."""
    bounds = rows.dropna(subset=["speedup_low", "speedup_high"]).groupby("machine", sort=False)
    return [str(name) for name, of_one in bounds if of_one["speedup_low"].max() > of_one["speedup_high"].min()]


def comparable(rows: pd.DataFrame) -> bool:
    """Whether some machine has intervals from two runs."""
    return bool(rows.dropna(subset=["speedup_low", "speedup_high"])["machine"].duplicated().any())


def _agreed(shared: pd.DataFrame) -> str:
    """A sentence on how many cells agree between runs of one machine; empty if none can be compared."""
    differing = [apart(cell) for _, cell in shared.groupby(list(KEYS), observed=True) if comparable(cell)]
    if not differing:
        return ""
    return f"Runs of one machine agree on {differing.count([])} of {units.count(len(differing), 'speedup')}. "


def _runs(races: Sequence[Race], table: pd.DataFrame) -> Sheet:
    runs = [one.run for one in races]
    sheet = sheet_of_runs(runs)
    silent = [name for name in names(runs) if not (table["run"] == name).any()]
    if not silent:
        return sheet
    verb = "has" if len(silent) == 1 else "have"
    return replace(sheet, notes=(f"{', '.join(silent)} {verb} no speedup. {NEEDED}",))


def _sheet(races: Sequence[Race], table: pd.DataFrame, workload: str) -> Sheet:
    here = table[table["workload"] == workload]
    shared = here.duplicated(list(KEYS), keep=False)
    runs = in_order(here, "run")
    status = {
        (label, str(row.engine), str(row.interpreter)): str(row.status)
        for label, one in zip(names([one.run for one in races]), races, strict=True)
        for row in each(one.table[one.table["workload"] == workload])
    }
    rows = [
        (
            *(Figure(str(engine)), Figure(str(interpreter))),
            _agreement(cell),
            Figure(units.ratio(float(cell["speedup"].max() / cell["speedup"].min()))),
            *_speedups(cell, runs, {run: status.get((run, str(engine), str(interpreter)), "") for run in runs}),
        )
        for (engine, interpreter), cell in here[shared].groupby(["engine", "interpreter"], observed=True, sort=True)
    ]
    alone = int((~shared).sum())
    notes = (f"{units.count(alone, 'more cell')} in one run only.",) if alone else ()
    return Sheet(
        workload, 2, ("engine", "interpreter", "on one machine", "largest / smallest", *runs), tuple(rows), notes
    )


def _speedups(cell: pd.DataFrame, runs: Sequence[str], status: dict[str, str]) -> Iterator[Figure]:
    found = {str(row.run): ratio(row, "speedup") for row in each(cell)}
    for run in runs:
        why = status[run]
        missing = Figure(status_text(why), mark=why) if why not in ("", MEASURED) else Figure(units.ABSENT)
        yield found.get(run, missing)


def _agreement(cell: pd.DataFrame) -> Figure:
    if not comparable(cell):
        return Figure(units.ABSENT)
    different = apart(cell)
    if not different:
        return Figure("agree")
    return Figure("differ", ", ".join(different) if cell["machine"].nunique() > 1 else "", "different")


def _relative(view: View, shared: pd.DataFrame) -> pd.DataFrame:
    """Rows of the headline workload that the first run shares, on the reference CPython if it has any, else on the
    interpreter with most of them.

    If the headline workload has no such row (a run may have timed `mnist` without baseline), take the workload with
    most of the first run's rows.
    """
    own = shared[shared["run"] == shared["run"].cat.categories[0]]
    workloads = in_order(own, "workload")
    workload = view.headline_workload
    if workload not in workloads:
        workload = max(workloads, key=lambda name: int((own["workload"] == name).sum()), default=None)
    rows = shared[shared["workload"] == workload].merge(own[[*KEYS, "speedup"]], on=list(KEYS), suffixes=("", "_first"))
    places = in_order(rows, "interpreter")
    if places:
        most = max(places, key=lambda name: int((rows["interpreter"] == name).sum()))
        home = view.run.reference_interpreter
        rows = rows[rows["interpreter"] == (home if home in places else most)]
    relative = {name.replace("speedup", "relative"): rows[name] / rows["speedup_first"] for name in SPEEDUP}
    return rows.assign(**relative).sort_values(["engine", "run"])
