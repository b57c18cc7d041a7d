"""Run and records -> one offline HTML file. Jinja2 escapes every text; only the charts' SVG passes as it is.

The page's one script is inlined and allowed by its hash, so that no other can run, whatever a name or a reason holds.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources

import jinja2
import pandas as pd

from reports.charts import charts
from reports.charts.drawing.svg import Drawing, drawing
from reports.discovery import left_out
from reports.measured.sequences import losses, values
from reports.profiling.profile_index import ProfileIndex
from reports.sections.growth import points
from reports.sections.history import History
from reports.story import Story, story
from results import units
from results.record import Record, Run


def render(run: Run, records: Iterable[Record], profile_index: ProfileIndex | None = None) -> str:
    """The report of a run as one page that needs no network, whatever state the run is in."""
    whole = story(run, records, profile_index)
    return page(whole, drawings(whole))


def page(story: Story, drawn: Sequence[Drawing]) -> str:
    """The same from a story and drawn charts."""
    script, run = _script(), story.view.run
    return (
        environment()
        .get_template("report.html.j2")
        .render(story=story, run=run, drawings=drawn, count=units.count, script=script, script_hash=_hash(script))
    )


def history_page(history: History) -> str:
    """The history of a folder's runs as one page that needs no network."""
    chart = charts()["history"]
    charted = [(part, drawing(f"history-{i}", chart, part.rows)) for i, part in enumerate(history.parts, 1)]
    return environment().get_template("history.html.j2").render(history=history, charted=charted)


@cache
def environment() -> jinja2.Environment:
    """For templates of pages, in which no text can become markup. It keeps the templates that it compiled."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _script() -> str:
    # Read as text, which makes every line end a line feed: a browser hashes the script after doing the same.
    return (resources.files("reports") / "templates" / "report.js").read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """A script's name in a Content-Security-Policy."""
    return f"sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def drawings(story: Story) -> list[Drawing]:
    """Every chart whose subject has rows; none where the plan is empty."""
    subjects = _subjects(story)
    drawn = []
    for name, chart in charts().items():
        with left_out(f"chart {name}"):
            if len(subjects.get(chart.SUBJECT, ())):
                drawn.append(drawing(name, chart, subjects[chart.SUBJECT]))
    return drawn


def _subjects(story: Story) -> dict[str, pd.DataFrame]:
    """The rows that charts are drawn from, by the subject that a chart names."""
    view, table = story.view, story.view.table
    none = table.iloc[:0]
    return {
        "headline": view.headline_rows,
        "trade-off": table[table["workload"] == view.trade_off_workload],
        "losses": losses(view.headline_rows, view.records),
        "sequences": values(view.headline_rows, view.records),
        "growth": points(table),
        "across": story.across.rows if story.across else none,
        "samples": story.profiled.samples if story.profiled else none,
        "anatomy-of-a-step": story.profiled.parts if story.profiled else none,
        "memory-over-time": story.profiled.points if story.profiled else none,
    }
