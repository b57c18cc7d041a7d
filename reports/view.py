"""Run and records -> what the run says, worked out once and passed down: outcomes, table, headline.

Whatever a report, an export or the terminal shows of a run starts from its view. Runs that are there for their speedups
alone, as in a history, have a `reports.measured.races.Race`, which keeps no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from reports.measured.headline import Headline, headline, headline_workload
from reports.measured.outcome import Outcome, outcomes
from reports.measured.races import timed
from reports.measured.table import cells
from reports.measured.trade_off import trade_off_workload
from reports.text.native_notes import native_note
from results.record import Cell, Record, Run


@dataclass(frozen=True)
class View:
    """What a run says."""

    run: Run
    records: tuple[Record, ...]
    outcomes: Mapping[Cell, Outcome]
    """Of every cell of the plan, in its order."""
    table: pd.DataFrame
    """Of `reports.measured.table.cells`."""
    headline_workload: str | None
    """None where the plan is empty."""
    trade_off_workload: str | None
    """The published workload that most cells were measured on; where none was, the headline's."""
    headline: Headline | None

    @property
    def headline_rows(self) -> pd.DataFrame:
        """The table's rows of the headline workload."""
        return self.table[self.table["workload"] == self.headline_workload]


def view(run: Run, records: Iterable[Record]) -> View:
    """The view of a run, finished or not."""
    records, plan = tuple(records), timed(run)
    found = outcomes(plan, records)
    table = cells(plan, records, found)
    workload = headline_workload(table)
    return View(
        run=run,
        records=records,
        outcomes=found,
        table=table,
        headline_workload=workload,
        trade_off_workload=trade_off_workload(table) or workload,
        headline=_headline(run, table, workload),
    )


def _headline(run: Run, table: pd.DataFrame, workload: str | None) -> Headline | None:
    if workload is None:
        return None
    found = headline(table, workload)
    return replace(found, notes=native_note([rung.engine for rung in found.rows], run.engines))
