"""Where perf's samples fall: by group of functions, engine by engine, on each interpreter."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Patch

from reports.charts import style
from reports.charts.style import Colour
from reports.figures import share
from reports.seen import COLLECTOR
from reports.table import in_order

ORDER = 13
SUBJECT = "samples"

REST = "others"
_NAMED = 9
"""Groups with a colour of their own, beside the collector."""
_COLUMNS = 4
"""Of the legend."""
_LEAST = 0.05
"""Share of a part that has room for its figure."""


def title(table: pd.DataFrame) -> str:
    """What the collector takes of the first engine, and of the last variant of it that was seen."""
    if table.empty:
        return "perf saw nothing"
    at_home = table[table["on_reference"].astype(bool)]
    rows = table if at_home.empty else at_home
    interpreter = in_order(rows, "interpreter")[0]
    rows = rows[rows["interpreter"] == interpreter]
    first = in_order(rows, "engine")[0]
    others = [engine for engine in in_order(rows[rows["is_variant"].astype(bool)], "engine") if engine != first]
    text = f"The {COLLECTOR} takes {share(_share(rows, first, COLLECTOR))} of {first}'s samples on {interpreter}"
    return f"{text}, {share(_share(rows, others[-1], COLLECTOR))} of {others[-1]}'s" if others else text


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    workload = f" on {table['workload'].iloc[0]}" if len(table) else ""
    return (
        f"A bar is all of perf's samples of one engine{workload}, parted by what the interrupted function does; groups "
        f"stand in one order, the collector first, then the largest over all bars; small ones are among the {REST}."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches."""
    bars = len(table[["engine", "interpreter"]].drop_duplicates())
    legend_rows = -(-len(_parts(table)) // _COLUMNS)
    return 8.4, 0.9 + 0.27 * (bars + 1.4 * len(in_order(table, "interpreter"))) + 0.24 * legend_rows


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.collector.samples`."""
    if table.empty:
        style.nothing_to_draw(axes, "perf saw nothing.")
        return
    parts = _parts(table)
    colours = _colours(parts)
    heights: dict[float, str] = {}
    height = 0.0
    for interpreter in in_order(table, "interpreter"):
        rows = table[table["interpreter"] == interpreter]
        axes.annotate(interpreter, (0, height), (7, 0), textcoords="offset points", va="center", weight="bold")
        for engine in in_order(rows, "engine"):
            height += 1
            heights[height] = engine
            left = 0.0
            for part, groups in parts.items():
                width, colour = _share(rows, engine, *groups), colours[part]
                axes.barh(height, width, left=left, height=0.72, color=colour, edgecolor=style.TEXT, linewidth=0.4)
                if width >= _LEAST:
                    colour = style.ink(colour)
                    axes.text(
                        left + width / 2, height, share(width), color=colour, ha="center", va="center", fontsize=8
                    )
                left += width
        height += 1.4
    axes.set_xlim(0, 1)
    axes.set_ylim(height - 0.6, -0.7)
    axes.set_yticks(list(heights), list(heights.values()))
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("of all samples")
    style.bare(axes, "left", "bottom")
    _legend(axes, colours)


def _parts(table: pd.DataFrame) -> dict[str, list[str]]:
    """Groups that a part of a bar stands for: the collector, the largest of the others, and the rest in one."""
    totals = table.groupby("group", sort=False)["share"].sum()
    totals = totals[totals > 0].sort_values(ascending=False, kind="stable")
    named = [str(group) for group in totals.index if group not in (COLLECTOR, REST)]
    parts = {group: [group] for group in ([COLLECTOR] if COLLECTOR in totals else []) + named[:_NAMED]}
    rest = [*named[_NAMED:], *([REST] if REST in totals else [])]
    return {**parts, REST: rest} if rest else parts


def _colours(parts: Iterable[str]) -> dict[str, Colour | str]:
    free = (colour for colour in map(style.series_colour, itertools.count()) if to_hex(colour) != style.COLLECTOR)
    fixed: dict[str, Colour | str] = {COLLECTOR: style.COLLECTOR, REST: style.MUTED}
    return {part: fixed.get(part) or next(free) for part in parts}


def _legend(axes: Axes, colours: dict[str, Colour | str]) -> None:
    handles = [
        Patch(facecolor=colour, edgecolor=style.TEXT, linewidth=0.4, label=part) for part, colour in colours.items()
    ]
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.legend(handles=handles, loc="outside lower left", ncols=_COLUMNS, frameon=False, fontsize=8.5)


def _share(rows: pd.DataFrame, engine: str, *groups: str) -> float:
    return float(rows.loc[(rows["engine"] == engine) & rows["group"].isin(groups), "share"].sum())
