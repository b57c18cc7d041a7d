"""Speedups of several runs relative to the first run's: how much runs disagree, and whether intervals explain it."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from reports.charts.drawing import style
from reports.measured.table import each, in_order
from results import units
from results.record import BASELINE

ORDER = 14
SUBJECT = "across"
_ENGINE_INCHES, _LINE_INCHES = 0.18, 0.13
_NARROWEST = 1.25
"""The axis reaches at least this factor to both sides; otherwise the noise of runs that agree would fill it."""


def title(table: pd.DataFrame) -> str:
    """The largest disagreement."""
    if table.empty:
        return "The first run's headline has no speedup that another run has too"
    spread = table.groupby("engine", observed=True)["speedup"].agg(lambda found: found.max() / found.min())
    where = f"{table['workload'].iloc[0]} on {table['interpreter'].iloc[0]}"
    return f"Speedups on {where} differ by up to {units.times(float(spread.max()))} between runs ({spread.idxmax()})"


def caption(table: pd.DataFrame) -> str:
    """How to read it."""
    return (
        "A mark is a run's speedup divided by the first run's, on a logarithmic scale. The bar through it is the "
        "interval of the run's speedup; a hollow mark has none. Colours are runs, shapes are machines. If the bars of "
        f"one engine do not overlap, its runs differ; if all engines shift by the same factor, {BASELINE} changed."
    )


def size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height in inches: an engine's row has one line for each run."""
    return 8.4, max(2.4, 1.0 + 0.2 * len(_legend(table)) / 2 + sum(_heights(table).values()))


def draw(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the rows of `reports.sections.across.Across`."""
    if table.empty:
        style.nothing_to_draw(axes, "No speedup of the headline was measured in two runs.")
        return
    ends = [table[f"relative{end}"].fillna(table["relative"]) for end in ("_low", "_high", "")]
    low, high = min(one.min() for one in ends), max(one.max() for one in ends)
    style.log_axis(axes, "x", low=min(low, 1 / _NARROWEST) / 1.05, high=max(high, _NARROWEST) * 1.05, text=_tick)
    axes.axvline(1.0, color=style.MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    top, middles = 0.0, {}
    for engine, inches in _heights(table).items():
        if top:
            axes.axhline(top, color=style.MUTED, linewidth=0.5, alpha=0.25, zorder=0.5)
        middles[top + inches / 2] = engine
        for line, row in enumerate(each(table[table["engine"] == engine])):
            y = top + _ENGINE_INCHES / 2 + _LINE_INCHES * (line + 0.5)
            bars = style.error_bars(row, "relative")
            axes.errorbar(row.relative, y, xerr=bars, fmt="none", ecolor=style.TEXT, elinewidth=1.1, capsize=2.5)
            axes.add_line(_mark(table, row.run, row.machine, row.relative, y, hollow=bars is None))
        top += inches
    axes.set_ylim(top, 0.0)
    axes.set_yticks(list(middles), list(middles.values()))
    axes.tick_params(axis="y", length=0)
    style.bare(axes, "left", "bottom")
    keys = [_mark(table, run, machine, label=label) for run, machine, label in _legend(table)]
    axes.legend(handles=keys, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    axes.set_xlabel("speedup divided by the first run's")


def _heights(table: pd.DataFrame) -> dict[str, float]:
    counts = {engine: int((table["engine"] == engine).sum()) for engine in in_order(table, "engine")}
    return {engine: _ENGINE_INCHES + _LINE_INCHES * count for engine, count in counts.items()}


def _legend(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    machine = {str(row.run): str(row.machine) for row in each(table)}
    several = len(set(machine.values())) > 1
    return [(run, machine[run], f"{run}, {machine[run]}" if several else run) for run in in_order(table, "run")]


def _mark(
    table: pd.DataFrame,
    run: str,
    machine: str,
    x: float = 0.0,
    y: float = 0.0,
    *,
    label: str = "",
    hollow: bool = False,
) -> Line2D:
    """Return a run's mark. x and y matter only on the axes, not in a legend."""
    colour = style.series_colour(list(table["run"].cat.categories).index(run))
    shape = style.series_marker(list(dict.fromkeys(table["machine"])).index(machine))
    face, edge = ("none", colour) if hollow else (colour, style.TEXT)
    return Line2D(
        [x], [y], linestyle="none", marker=shape, ms=7, mfc=face, mec=edge, mew=1.6 if hollow else 0.5, label=label
    )


def _tick(value: float) -> str:
    return f"{value:.3g}×"
