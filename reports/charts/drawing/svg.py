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

from zoomgrad.reports.charts import Chart
from zoomgrad.reports.charts.drawing.style import TIP

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    # A name may contain dollar signs and must not be read as a formula.
    "text.parse_math": False,
    "hatch.linewidth": 0.6,
}


_STYLE = r' style="([^"]*)"'
_RECTANGLE = r"M (\S+) (\S+) L (\S+) \2 L \3 (\S+) L \1 \4 (?:L \1 \2 )?z "


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
    # A README shows the file as an image, which has no tooltips.
    plain = _ungrouped(re.sub(r'(?<=<g) data-cell="[^"]*">\n<title>.*?</title>', ">", svg))
    head, rest = plain.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{colours}{rest}'


def _inline(text: str, name: str, title: str) -> Markup:
    # Matplotlib's style sheet would apply to the whole page; its metadata and comments are useless there.
    text = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.S)
    text = text.replace("stroke: #000000", "stroke: currentColor").replace("xlink:href", "href")
    width, height = (float(points) for points in re.findall(r'\b(?:width|height)="([\d.]+)pt"', text)[:2])
    # At least one pixel per point keeps text readable on a phone, which scrolls; at most the size on paper.
    limits = f"min-width: {width:.0f}px; max-width: {width * 4 / 3:.0f}px"
    # Elements that are black by default have no fill attribute; they inherit the page's colour from here.
    head = (
        f'<svg id="{name}-chart" viewBox="0 0 {width:g} {height:g}" style="{limits}" '
        f'role="img" aria-labelledby="{name}-title" fill="currentColor" stroke-linejoin="round">'
        f'<title id="{name}-title">{escape(title)}</title>'
    )
    text = re.sub(r"<svg.*?>", lambda _: head, _compact(text, name), count=1, flags=re.S)
    return Markup(text)  # noqa: S704  # Matplotlib escapes its texts


def _compact(svg: str, name: str) -> str:
    """Turn tooltips into titles and styles into classes, drop unused ids, round coordinates to a tenth of a point."""
    svg = re.sub(rf'<g id="{TIP}([^"|]*)\|([^"]*)">', r'<g data-cell="\1"><title>\2</title>', svg)
    used = set(re.findall(r"#([\w.:-]+)", svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found[0] * (found[1] in used), svg)
    svg = re.sub(r'(?<= )(d|x|y|width|height|transform)="[^"]*"', lambda found: _rounded(found[0]), svg)
    svg = _ungrouped(svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"|<defs>\s*</defs>', "", svg)
    # A clipping path repeats as often as a style, and CSS allows it as part of one.
    svg = re.sub(r'clip-path="([^"]+)" style="', r'style="clip-path: \1; ', svg)
    styles = {style: f"s{number}" for number, style in enumerate(dict.fromkeys(re.findall(_STYLE, svg)))}
    svg = re.sub(_STYLE, lambda found: f' class="{styles[found[1]]}"', svg)
    sheet = "".join(f"#{name}-chart .{class_}{{{style}}}" for style, class_ in styles.items())
    # One element per line keeps diffs readable.
    return re.sub(r">\s*<", ">\n<", svg).replace("</svg>", f"<style>{sheet}</style>\n</svg>")


def _ungrouped(svg: str) -> str:
    """Remove groups without attributes, but not their content."""
    bare: list[bool] = []

    def kept(tag: re.Match[str]) -> str:
        if tag[0] != "</g>":
            bare.append(tag[0] == "<g>")
        return "" if (bare.pop() if tag[0] == "</g>" else bare[-1]) else tag[0]

    return re.sub(r"<g\b[^>]*>|</g>", kept, re.sub(r"<g[^>]*/>", "", svg))


def _rounded(attribute: str) -> str:
    text = re.sub(r"-?\d+\.\d+", lambda number: f"{round(float(number[0]), 1) + 0.0:g}", attribute)
    return re.sub(_RECTANGLE, r"M\1 \2H\3V\4H\1z", re.sub(r"\s+", " ", text))
