"""The style that all charts share: one colour for each family of engines, one shape for each interpreter.

Black means "the page's text colour": `svg` turns it into `currentColor`, so a chart suits light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from zoomgrad.results import units

TEXT = "black"
MUTED = "#808080"
TIP = "tip:"
"""Start of the id of an artist that has a tooltip."""
EDGE = (Stroke(linewidth=2.0, foreground=TEXT, alpha=0.45), Normal())
"""Outline of a curve, so that a dark one is visible on a dark page and a pale one on a white page."""

MOST_TICKS = 7
"""Most labelled ticks of a logarithmic axis."""

Colour = str

ON_WHITE, ON_DARK = "#ffffff", "#14171a"
"""The pages' backgrounds. Every colour below has a contrast of 3:1 or more with both."""

FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "interpreted": ("#7a828c", ("baseline", "tuple", "slots", "hoisted", "local-grads", "replay")),
    "Value in C": ("#a5673f", ("cython", "mypyc", "native")),
    "generated Python": ("#8d8a1a", ("bytecode", "python-source")),
    "TCC": ("#b5811a", ("tcc",)),
    "gcc": ("#d55e00", ("gcc",)),
    "Clang": ("#2b7fd0", ("clang",)),
    "recovered loops": ("#0a9468", ("rerolled",)),
    "handwritten": ("#c2559d", ("handwritten",)),
    "library": ("#8a6fd8", ("numpy", "torch", "jax")),
    "other": ("#808080", ()),
}
"""Family -> its colour and the first parts of its engines' names. An engine has its family's colour in every report."""

SERIES = ("#2b7fd0", "#d55e00", "#0a9468", "#c2559d", "#b5811a", "#8a6fd8", "#14919b", "#a5673f")
"""Colours of what is not an engine: phases, parts of a step, runs."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")

PYTHON, NATIVE, COLLECTOR = "#56b4e9", "#e69f00", "#d55e00"
"""Colours by whose code a sample is in: areas with dark text."""


def shade(colour: str | Colour, towards_white: float) -> str:
    """Return a paler colour. towards_white: 0 changes nothing, 1 gives white."""
    red, green, blue = (part + (1 - part) * towards_white for part in to_rgb(colour))
    return to_hex((red, green, blue))


def family(engine: str) -> str:
    """Return the family of an engine, by its name, which may be that of a stranger's engine."""
    return next(
        (name for name, (_, roots) in FAMILIES.items() if any(f"{engine}-".startswith(f"{root}-") for root in roots)),
        "other",
    )


def engine_colour(engine: str) -> Colour:
    """Return the engine's colour, the same in every report."""
    return FAMILIES[family(engine)][0]


def family_keys(engines: Iterable[str]) -> list[Line2D]:
    """Return the legend's entries for the families of these engines."""
    there = {family(engine) for engine in engines}
    return [
        Line2D([], [], linestyle="none", marker="s", color=colour, label=name)
        for name, (colour, _) in FAMILIES.items()
        if name in there
    ]


def tip(artist: Artist, row: Any, text: str) -> None:
    """Give a mark its tooltip: the cell, the figure with its interval, and where it comes from.

    `svg` turns the artist's id into a title and `data-cell`, by which the page filters.
    """
    key = f"{row.engine}/{row.interpreter}/{row.workload}"
    blocks = "1 process" if row.blocks == 1 else f"{row.blocks} processes"
    text = text.replace(f"({units.ABSENT})", "(no interval)")
    artist.set_gid(f"{TIP}{key}|{key}: {text}. Median of {blocks}, {row.bits} results.")


def ink(colour: Any) -> str:
    """Return white or dark ink that is readable on a colour, by relative luminance with the weights of Rec. 709."""
    luminance = sum(part * weight for part, weight in zip(to_rgb(colour), (0.2126, 0.7152, 0.0722), strict=True))
    return "#ffffff" if luminance < 0.5 else "#101010"


def series_colour(index: int) -> Colour:
    """Return the colour of the series with that index."""
    return SERIES[index % len(SERIES)]


def interpreter_marker(table: pd.DataFrame, interpreter: str) -> str:
    """Return the interpreter's shape in every chart of a run."""
    return series_marker(list(table["interpreter"].cat.categories).index(interpreter))


def series_marker(index: int) -> str:
    """Return the shape of the series with that index."""
    return _MARKERS[index % len(_MARKERS)]


def log_seconds(axes: Axes, which: str, *, low: float, high: float) -> None:
    """Set a logarithmic axis of seconds from low to high, with ticks such as 10 ms and 1,000 s."""
    log_axis(axes, which, low=low, high=high, text=tick)


def log_axis(axes: Axes, which: str, *, low: float, high: float, text: Callable[[float], str]) -> None:
    """Set a logarithmic axis from low to high with the ticks of `log_ticks`."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)  # first, because margins may overflow
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis.set_major_locator(FixedLocator(log_ticks(low, high)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(NullFormatter())
    axes.grid(True, axis="x" if which == "x" else "y", color=MUTED, alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)


def log_ticks(low: float, high: float) -> list[float]:
    """Decades from low to high, at most MOST_TICKS; if fewer than three fit, at 1, 2 and 5 or at 1 and 3 of each."""
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    inside = [power for power in powers if low <= 10.0**power <= high]
    if len(inside) >= 3:
        stride = math.ceil(len(inside) / MOST_TICKS)
        return [10.0**power for power in inside if power % stride == 0]
    finer = [10.0**power * part for power in powers for part in (1, 2, 5) if low <= 10.0**power * part <= high]
    if len(finer) <= MOST_TICKS:
        return finer
    return [10.0**power * part for power in powers for part in (1, 3) if low <= 10.0**power * part <= high]


def tick(seconds: float) -> str:
    """Format seconds for an axis: 10 ms, 1,000 s."""
    return f"{seconds:,.0f} s" if seconds >= 1 else _short(units.duration(seconds))


def _short(text: str) -> str:
    """Remove the zeros that `units` writes for three significant digits."""
    return text.replace(".00", "").replace(".0", "")


def bare(axes: Axes, *keep: str) -> None:
    """Hide all spines except the named ones."""
    for name, spine in axes.spines.items():
        spine.set_visible(name in keep)


def nothing_to_draw(axes: Axes, text: str) -> None:
    """Show only a text that says why the chart is empty."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def error_bars(row: Any, column: str) -> list[list[float]] | None:
    """Return the distances below and above a row's figure, as Matplotlib's `xerr`; None without an interval."""
    value, low, high = (float(getattr(row, name)) for name in (column, f"{column}_low", f"{column}_high"))
    return None if low != low or high != high else [[max(value - low, 0.0)], [max(high - value, 0.0)]]
