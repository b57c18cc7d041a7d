"""Chart -> inline SVG: text stays text, black becomes the page's colour, ids are the chart's own, bytes never vary."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

import matplotlib
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from reports.charts import Chart
from reports.charts.drawing.compact import compact

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    # A name may hold a dollar sign, and is no formula.
    "text.parse_math": False,
    "hatch.linewidth": 0.6,
}


@dataclass(frozen=True)
class Drawing:
    """A chart as a page shows it."""

    name: str
    subject: str
    title: str
    caption: str
    svg: Markup


def drawing(name: str, chart: Chart, table: pd.DataFrame) -> Drawing:
    """Draw one chart of its subject's rows. `name` prefixes its ids, so that charts can share a page."""
    title = chart.title(table)
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=chart.size(table), layout="constrained")
        FigureCanvasSVG(figure)  # before drawing, because charts that place labels measure text on it
        chart.draw(table, figure.subplots())
        svg = written(figure, name, title)
    return Drawing(name, chart.SUBJECT, title, chart.caption(table), svg)


def written(figure: Figure, name: str, title: str) -> Markup:
    """A figure that was drawn in this style, as SVG for a page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return _inline(text.getvalue(), name, title)


def standalone(drawn: Drawing) -> str:
    """The chart as a file of its own, for a README or a slide: it brings the page's colour, light or dark."""
    return alone(drawn.svg, drawn.name)


def alone(svg: str, name: str) -> str:
    """The same for the SVG alone."""
    colours = "<style>svg{color:#1a1a1a}@media(prefers-color-scheme:dark){svg{color:#e6e6e6}}</style>"
    # Nothing beside it needs to be kept apart from its ids and its styles.
    text = re.sub(rf'(?<=["#]){re.escape(name)}-', "", svg).replace("#chart .", ".")
    head, rest = text.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{colours}{rest}'


def _inline(text: str, name: str, title: str) -> Markup:
    # Matplotlib's own style sheet would reach the whole page, and its metadata is of no use inside one.
    text = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = text.replace("stroke: #000000", "stroke: currentColor").replace("xlink:href", "href")
    width, height = (float(points) for points in re.findall(r'\b(?:width|height)="([\d.]+)pt"', text)[:2])
    # At least a pixel a point, so that text stays readable on a phone, which scrolls; at most its size on paper.
    limits = f"min-width: {width:.0f}px; max-width: {width * 4 / 3:.0f}px"
    # What is black by default has no fill of its own in the file, so it takes the page's colour from here.
    head = (
        f'<svg viewBox="0 0 {width:g} {height:g}" style="{limits}" '
        f'role="img" aria-labelledby="{name}-title" fill="currentColor" stroke-linejoin="round">'
        f'<title id="{name}-title">{escape(title)}</title>'
    )
    text = re.sub(r"<svg.*?>", lambda _: head, text, count=1, flags=re.DOTALL)
    return Markup(compact(text, name))  # noqa: S704  # Matplotlib escapes its texts
