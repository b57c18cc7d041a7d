"""The style that all charts share: one palette, one colour for each engine, one shape for each interpreter.

Black means "the page's text colour": `svg` turns it into `currentColor`, so a chart suits light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from results import units

TEXT = "black"
MUTED = "#808080"
HATCH = "////"
EDGE = (Stroke(linewidth=2.0, foreground=TEXT, alpha=0.45), Normal())
"""Outline of a curve, so that a dark one is visible on a dark page and a pale one on a white page."""

MOST_TICKS = 7
"""Most labelled ticks of a logarithmic axis."""

Colour = tuple[float, float, float]

# Okabe and Ito, "Color Universal Design", 2008, without black and yellow, which vanish on dark and white pages. The
# order keeps the colours of neighbours on the ladder far apart, also from one round to the next.
_PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_ROUNDS = ((0.0, 0.0), (1.0, 0.5), (0.0, 0.45), (1.0, 0.75), (0.0, 0.7))
"""For each round through the palette: mix with white (1) or black (0), and the share of that."""
_LINES: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")

PYTHON, NATIVE, COLLECTOR = "#56b4e9", "#e69f00", "#d55e00"
"""Colours by whose code a sample is in; from the palette, and light enough for dark text."""


def shade(colour: str | Colour, towards_white: float) -> str:
    """Return a paler colour. towards_white: 0 changes nothing, 1 gives white."""
    red, green, blue = (part + (1 - part) * towards_white for part in to_rgb(colour))
    return to_hex((red, green, blue))


def engine_colour(table: pd.DataFrame, engine: str) -> Colour:
    """Return the engine's colour in every chart of a run, by its place on the ladder."""
    return series_colour(list(table["engine"].cat.categories).index(engine))


def ink(colour: Any) -> str:
    """Return white or dark ink that is readable on a colour, by relative luminance with the weights of Rec. 709."""
    luminance = sum(part * weight for part, weight in zip(to_rgb(colour), (0.2126, 0.7152, 0.0722), strict=True))
    return "#ffffff" if luminance < 0.5 else "#101010"


def series_colour(index: int) -> Colour:
    """Return the colour of the series with that index. Later rounds through the palette are paler or darker."""
    towards, share = _ROUNDS[index // len(_PALETTE) % len(_ROUNDS)]
    red, green, blue = (part + (towards - part) * share for part in to_rgb(_PALETTE[index % len(_PALETTE)]))
    return red, green, blue


def interpreter_marker(table: pd.DataFrame, interpreter: str) -> str:
    """Return the interpreter's shape in every chart of a run."""
    return series_marker(list(table["interpreter"].cat.categories).index(interpreter))


def series_marker(index: int) -> str:
    """Return the shape of the series with that index."""
    return _MARKERS[index % len(_MARKERS)]


def interpreter_line(table: pd.DataFrame, interpreter: str) -> Literal["-", "--", ":", "-."]:
    """Return the interpreter's line style in every chart of a run."""
    return _LINES[list(table["interpreter"].cat.categories).index(interpreter) % len(_LINES)]


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


def bytes_tick(size: float) -> str:
    """Format bytes for an axis: 100 MB."""
    return _short(units.size(size))


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
