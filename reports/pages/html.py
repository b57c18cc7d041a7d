"""Story -> one offline HTML file. Jinja2 escapes every text except the charts' SVG, the styles and the script.

The page's only script is inlined and allowed by its hash, so no other can run, whatever names and reasons contain.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from functools import cache
from importlib import resources
from itertools import groupby

import jinja2
from markupsafe import Markup

from zoomgrad.reports.charts.history import history as history_chart
from zoomgrad.reports.sections.first import CAPTION, HEADINGS, LEGEND
from zoomgrad.reports.sections.history import History
from zoomgrad.reports.story import OPEN, Story

_UNITS = re.compile(r"(?<=\d) (?=(?:[nµm]?s|min|h|[kMG]?B|%)(?!\w))|(?<=[≈✓<]) (?=\w)")
"""The spaces between a figure and its unit or sign, where a line must not break."""


def page(story: Story) -> str:
    """Render a story as one page that needs no network."""
    by_workload = [(name, list(panels)) for name, panels in groupby(story.panels, key=lambda panel: panel.workload)]
    return _rendered(
        "report.html.j2",
        story=story,
        run=story.view.run,
        workloads=by_workload,
        facts=story.view.run.workloads,
        caption=f"{CAPTION} {LEGEND}",
        headings=HEADINGS,
        open=OPEN,
    )


def history_page(history: History) -> str:
    """Render the history of a folder's runs: one table and one chart."""
    return _rendered("history.html.j2", history=history, drawing=history_chart("history", history.chart))


def _rendered(template: str, **values: object) -> str:
    script = _text("report.js")
    return _environment().get_template(template).render(script=script, script_hash=_hash(script), **values)


@cache
def _environment() -> jinja2.Environment:
    """Return the environment for pages, in which no text can become markup. Cached: it keeps compiled templates."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("zoomgrad.reports"),
        autoescape=True,
        finalize=_glued,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _glued(value: object) -> object:
    """Put non-breaking spaces into the figures of a text. Markup stays as it is."""
    return _UNITS.sub("\u00a0", value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _text(name: str) -> Markup:
    # Read as text, which normalizes line ends to line feeds: a browser does the same before it hashes the script.
    return Markup((resources.files("zoomgrad.reports") / "templates" / name).read_text(encoding="utf-8"))  # noqa: S704


def _hash(script: str) -> str:
    """Return the script's hash as a Content-Security-Policy names it."""
    return f"sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
