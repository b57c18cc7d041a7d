"""Run and records -> the run's view: outcomes, table and headline workload, computed once.

Reports, exports and the terminal all start from it. Where only a run's speedups count, as in a history, a
`reports.measured.races.Race` is enough; it keeps no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from zoomgrad.reports.measured.headline import headline_workload
from zoomgrad.reports.measured.outcome import Outcome, outcomes
from zoomgrad.reports.measured.races import timed
from zoomgrad.reports.measured.table import cells, in_order, main_rows, measured, ranked_rows
from zoomgrad.results.record import BASELINE, Cell, Record, Run
from zoomgrad.results.samples import at_median_pace


@dataclass(frozen=True)
class View:
    """A run with everything derived from its records."""

    run: Run
    records: tuple[Record, ...]
    """At the run's median pace, as everything else here."""
    as_measured: tuple[Record, ...]
    """The records on disk."""
    outcomes: Mapping[Cell, Outcome]
    """The outcome of every cell of the plan, in plan order."""
    table: pd.DataFrame
    """The result of `reports.measured.table.cells`."""
    headline_workload: str | None
    """None if the plan is empty."""

    def workloads(self, rows: pd.DataFrame) -> list[str]:
        """Return the workloads of these rows, the headline's first, then in the run's order."""
        return sorted(in_order(rows, "workload"), key=lambda name: name != self.headline_workload)

    def ranked(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the measured rows that have a rank: baseline, and engines with identical bits on one thread."""
        rows = measured(rows)
        return rows.loc[ranked_rows(rows).index.union(rows.index[rows["engine"] == BASELINE])]

    @property
    def main_rows(self) -> pd.DataFrame:
        """The table without peers and engines with one choice changed, which have sections of their own."""
        return main_rows(self.table)


def view(run: Run, records: Iterable[Record]) -> View:
    """Return the view of a run, which may be unfinished."""
    as_measured = tuple(records)
    records = at_median_pace(as_measured)
    plan = timed(run)
    of_cells = outcomes(plan, records)
    table = cells(plan, records, of_cells)
    return View(run, tuple(records), as_measured, of_cells, table, headline_workload(table))
