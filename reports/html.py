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
from reports.discovery import left_out
from reports.growth import points
from reports.history import History
from reports.published import trade_off_workload
from reports.seen import Seen
from reports.sequences import losses, values
from reports.story import Story, story
from reports.svg import Drawing, drawing
from results import units
from results.record import Record, Run


def render(run: Run, records: Iterable[Record], looks: Seen | None = None) -> str:
    """The report of a run as one page that needs no network, whatever state the run is in."""
    told = story(run, records, looks)
    return page(told, drawings(told))


def page(told: Story, drawn: Sequence[Drawing]) -> str:
    """The same from a story told and charts drawn already."""
    script = _script()
    return (
        environment()
        .get_template("report.html.j2")
        .render(story=told, run=told.run, drawings=drawn, count=units.count, script=script, script_hash=_hash(script))
    )


def history_page(told: History) -> str:
    """The history of a folder's runs as one page that needs no network."""
    chart = charts()["history"]
    charted = [(part, drawing(f"history-{i}", chart, part.rows)) for i, part in enumerate(told.parts, 1)]
    return environment().get_template("history.html.j2").render(history=told, charted=charted)


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


def drawings(told: Story) -> list[Drawing]:
    """Every chart whose subject has rows; none where the plan is empty."""
    subjects = _subjects(told)
    drawn = []
    for name, chart in charts().items():
        with left_out(f"chart {name}"):
            if len(subjects.get(chart.SUBJECT, ())):
                drawn.append(drawing(name, chart, subjects[chart.SUBJECT]))
    return drawn


def _subjects(told: Story) -> dict[str, pd.DataFrame]:
    """The rows that charts are drawn from, by the subject that a chart names."""
    workload = told.headline.workload if told.headline else ""
    rows = told.table[told.table["workload"] == workload]
    return {
        "headline": rows,
        "trade-off": told.table[told.table["workload"] == (trade_off_workload(told.table) or workload)],
        "losses": losses(rows, told.records),
        "sequences": values(rows, told.records),
        "growth": points(told.table),
        "across": told.across.rows if told.across else told.table.iloc[:0],
        "samples": told.profiled.samples if told.profiled else told.table.iloc[:0],
        "anatomy-of-a-step": told.profiled.parts if told.profiled else told.table.iloc[:0],
        "memory-over-time": told.profiled.points if told.profiled else told.table.iloc[:0],
    }
