"""Chart -> inline SVG: text stays text, black becomes the page's colour, ids are unique, and output is reproducible."""

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
    # A name may contain dollar signs and must not be read as a formula.
    "text.parse_math": False,
    "hatch.linewidth": 0.6,
}


@dataclass(frozen=True)
class Drawing:
    """A drawn chart with the texts that a page shows."""

    name: str
    subject: str
    title: str
    caption: str
    svg: Markup


def drawing(name: str, chart: Chart, table: pd.DataFrame) -> Drawing:
    """Draw one chart from its subject's rows. `name` prefixes all ids, so that charts can share a page."""
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
    """Return the chart as a separate SVG file, for a README or a slide, with text colours for light and dark pages."""
    return alone(drawn.svg, drawn.name)


def alone(svg: str, name: str) -> str:
    """The same for the SVG alone."""
    # Without a colour scheme, a browser shows the file on white also to readers who prefer dark.
    light = "svg{color-scheme:light dark;color:#1a1a1a}"
    colours = f"<style>{light}@media(prefers-color-scheme:dark){{svg{{color:#e6e6e6}}}}</style>"
    # A separate file needs no prefix on ids and styles.
    text = re.sub(rf'(?<=["#]){re.escape(name)}-', "", svg).replace("#chart .", ".")
    head, rest = text.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{colours}{rest}'


def _inline(text: str, name: str, title: str) -> Markup:
    # Matplotlib's style sheet would apply to the whole page; its metadata is useless there.
    text = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = text.replace("stroke: #000000", "stroke: currentColor").replace("xlink:href", "href")
    width, height = (float(points) for points in re.findall(r'\b(?:width|height)="([\d.]+)pt"', text)[:2])
    # At least one pixel per point keeps text readable on a phone, which scrolls; at most the size on paper.
    limits = f"min-width: {width:.0f}px; max-width: {width * 4 / 3:.0f}px"
    # Elements that are black by default have no fill attribute; they inherit the page's colour from here.
    head = (
        f'<svg viewBox="0 0 {width:g} {height:g}" style="{limits}" '
        f'role="img" aria-labelledby="{name}-title" fill="currentColor" stroke-linejoin="round">'
        f'<title id="{name}-title">{escape(title)}</title>'
    )
    text = re.sub(r"<svg.*?>", lambda _: head, text, count=1, flags=re.DOTALL)
    return Markup(compact(text, name))  # noqa: S704  # Matplotlib escapes its texts
