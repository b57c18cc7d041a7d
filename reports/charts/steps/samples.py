"""Shares of perf's samples by group of functions, for each engine and interpreter."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from reports.charts.drawing import stacked, style
from reports.charts.drawing.stacked import share_of
from reports.measured.table import in_order
from reports.profiling.profile_index import COLLECTOR
from reports.text.figures import share

ORDER = 13
SUBJECT = "samples"

REST = "others"
_NAMED = 9
"""Number of groups with their own colour, besides the collector."""


def title(table: pd.DataFrame) -> str:
    """The garbage collector's share in the first engine, and in the last variant of it that was profiled."""
    if table.empty:
        return "perf saw nothing"
    at_home = table[table["on_reference"].astype(bool)]
    rows = table if at_home.empty else at_home
    interpreter = in_order(rows, "interpreter")[0]
    rows = rows[rows["interpreter"] == interpreter]
    first = in_order(rows, "engine")[0]
    others = [engine for engine in in_order(rows[rows["is_variant"].astype(bool)], "engine") if engine != first]
    text = f"The {COLLECTOR} takes {share(share_of(rows, first, COLLECTOR))} of {first}'s samples on {interpreter}"
    return f"{text}, {share(share_of(rows, others[-1], COLLECTOR))} of {others[-1]}'s" if others else text


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    workload = f" on {table['workload'].iloc[0]}" if len(table) else ""
    return (
        f"A bar is all of perf's samples of one engine{workload}, divided by what the interrupted function does. All "
        "bars have the groups in the same order: the collector first, then the others, largest over all bars first. "
        f"Small groups are among the {REST}."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return stacked.size(table, _parts(table))


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.profiling.collector.samples`."""
    if table.empty:
        style.nothing_to_draw(axes, "perf saw nothing.")
        return
    stacked.draw_bars(
        axes, table, _parts(table), {COLLECTOR: style.COLLECTOR, REST: style.MUTED}, label="share of all samples"
    )


def _parts(table: pd.DataFrame) -> dict[str, list[str]]:
    """Return the groups in each part of a bar: the collector, the largest others, and all the rest as one part."""
    totals = table.groupby("group", sort=False)["share"].sum()
    totals = totals[totals > 0].sort_values(ascending=False, kind="stable")
    named = [str(group) for group in totals.index if group not in (COLLECTOR, REST)]
    parts = {group: [group] for group in ([COLLECTOR] if COLLECTOR in totals else []) + named[:_NAMED]}
    rest = [*named[_NAMED:], *([REST] if REST in totals else [])]
    return {**parts, REST: rest} if rest else parts
