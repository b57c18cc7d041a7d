"""Table -> each engine's speed on every interpreter over its speed on one of them, with the geometric means.

A speedup is over `baseline` on the same interpreter, so a build of Python that makes everything faster does not show in
it. Here the same engine is compared on two interpreters, block by block.
"""

from __future__ import annotations

import math

import pandas as pd

from reports.measured.table import each, in_order, measured
from reports.text.figures import Figure, Section, Sheet, ratio
from results import units
from results.stats.intervals import Interval, geometric_mean


def versus(table: pd.DataFrame, name: str) -> Section | None:
    """One sheet per workload with engines as rows and interpreters as columns; None if nothing was compared.

    name: the interpreter that the others are compared with; empty for none.
    """
    rows = measured(table)
    rows = rows[rows["speedup_versus"].notna()]
    if not name or rows.empty:
        return None
    lead = (
        f"Speed of each engine over its speed on {name}: 1.10× means that the column's interpreter runs 1.10 steps "
        f"while {name} runs one. Ratios are of steps in the same block, corrected by the machine's pace as {name} and "
        "the other interpreter each measured it, with a 95 % interval that holds for each ratio by itself."
    )
    sheets = tuple(_sheet(workload, rows[rows["workload"] == workload]) for workload in in_order(rows, "workload"))
    return Section("versus", f"Interpreters compared with {name}", lead, sheets)


def _sheet(workload: str, rows: pd.DataFrame) -> Sheet:
    interpreters = in_order(rows, "interpreter")
    found = {(str(row.engine), str(row.interpreter)): row for row in each(rows)}
    engines = in_order(rows, "engine")
    lines = [
        (Figure(engine), *(_figure(found.get((engine, interpreter))) for interpreter in interpreters))
        for engine in engines
    ]
    if len(engines) > 1:
        columns = [[found[engine, name] for engine in engines if (engine, name) in found] for name in interpreters]
        lines.append((Figure("geometric mean"), *map(_mean, columns)))
    return Sheet(workload, 1, ("engine", *interpreters), tuple(lines))


def _figure(row: object) -> Figure:
    return ratio(row, "speedup_versus") if row is not None else Figure(units.ABSENT)


def _mean(rows: list[object]) -> Figure:
    """The mean of a column. Engines share no process, so their errors are independent."""
    parts = [Interval(*(float(getattr(row, f"speedup_versus{end}")) for end in ("", "_low", "_high"))) for row in rows]
    mean = geometric_mean(parts)
    below = "" if math.isnan(mean.low) else units.ratio_interval(mean.low, mean.high)
    return Figure(units.ratio(mean.value), f"{below} ({units.count(len(parts), 'engine')})".strip())
