"""Where the time of a step goes, by engine: building, ordering, forward, backward, update, freeing, collecting."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from zoomgrad.reports.charts.drawing import stacked, style
from zoomgrad.reports.measured.table import each, in_order
from zoomgrad.reports.profiling.anatomy import LABELS
from zoomgrad.reports.text.figures import share
from zoomgrad.results import units

ORDER = 13
SUBJECT = "anatomy-of-a-step"

_PARTS = {label: [label] for label in LABELS.values()}
_COLOURS = {
    LABELS["free"]: style.shade("#009e73", 0.65),
    LABELS["collector"]: style.COLLECTOR,
    LABELS["rest"]: style.MUTED,
}


def title(table: pd.DataFrame) -> str:
    """The two largest parts of the first engine's step."""
    if table.empty:
        return "No step was profiled"
    at_home = table[table["on_reference"].astype(bool)]
    rows = table if at_home.empty else at_home
    interpreter, engine = in_order(rows, "interpreter")[0], in_order(rows, "engine")[0]
    rows = rows[(rows["interpreter"] == interpreter) & (rows["engine"] == engine)]
    first, second = (
        f"{row.group} ({share(row.share)})" for row in each(rows.sort_values("share", ascending=False).head(2))
    )
    return f"Most of a step of {engine} on {interpreter} goes to: {first}, then {second}"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    workload = f" on {table['workload'].iloc[0]}" if len(table) else ""
    return (
        f"A bar is one step of an engine{workload}, divided into its parts; to its right is the time of the whole "
        "step. The time of a garbage collection is subtracted from the part that it interrupts."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    return stacked.size(table, _PARTS)


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.profiling.anatomy.parts`."""
    if table.empty:
        style.nothing_to_draw(axes, "No step was profiled.")
        return

    def whole(rows: pd.DataFrame) -> str:
        return units.duration(float(rows["step_seconds"].iloc[0]))

    stacked.draw_bars(axes, table, _PARTS, _COLOURS, label="share of a step", end=whole)
