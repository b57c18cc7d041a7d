"""Run and records -> one offline HTML file. Jinja2 escapes every text except the charts' SVG and the script.

The page's only script is inlined and allowed by its hash, so no other can run, whatever names and reasons contain.
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
from reports.measured.contests import contests, grid
from reports.measured.sequences import losses, values
from reports.profiling.profile_index import ProfileIndex
from reports.sections.compiling.growth import points
from reports.sections.history import History
from reports.story import Story, story
from results import units
from results.record import Record, Run


def render(run: Run, records: Iterable[Record], profile_index: ProfileIndex | None = None) -> str:
    """Render the report of a run, complete or not, as one page that needs no network."""
    whole = story(run, records, profile_index)
    return page(whole, drawings(whole))


def page(story: Story, drawn: Sequence[Drawing]) -> str:
    """Render the same page from a story and drawn charts."""
    script, run = _script(), story.view.run
    return (
        environment()
        .get_template("report.html.j2")
        .render(story=story, run=run, drawings=drawn, count=units.count, script=script, script_hash=_hash(script))
    )


def history_page(history: History) -> str:
    """Render the history of a folder's runs as one page that needs no network."""
    chart = charts()["history"]
    charted = [(part, drawing(f"history-{i}", chart, part.rows)) for i, part in enumerate(history.parts, 1)]
    return environment().get_template("history.html.j2").render(history=history, charted=charted)


@cache
def environment() -> jinja2.Environment:
    """Return the environment for pages, in which no text can become markup. Cached: it keeps compiled templates."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _script() -> str:
    # Read as text, which normalizes line ends to line feeds: a browser does the same before it hashes the script.
    return (resources.files("reports") / "templates" / "report.js").read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return the script's hash as a Content-Security-Policy names it."""
    return f"sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def drawings(story: Story) -> list[Drawing]:
    """Draw every chart whose subject has rows; none if the plan is empty."""
    subjects = _subjects(story)
    drawn = []
    for name, chart in charts().items():
        with left_out(f"chart {name}"):
            if len(subjects.get(chart.SUBJECT, ())):
                drawn.append(drawing(name, chart, subjects[chart.SUBJECT]))
    return drawn


def _subjects(story: Story) -> dict[str, pd.DataFrame]:
    """Return the rows for charts, by the subject that a chart names."""
    view, table = story.view, story.view.table
    none = table.iloc[:0]
    batches = {name: facts.batch for name, facts in view.run.workloads.items()}
    facts = view.run.workloads.get(view.headline_workload or "")
    return {
        "headline": view.headline_rows,
        "trade-off": view.ladder[view.ladder["workload"] == view.trade_off_workload],
        "peers": grid(contests(table, batches)),
        "losses": losses(view.headline_rows, view.records) if facts is None or facts.learns else none,
        "sequences": values(view.headline_rows, view.records),
        "growth": points(view.ladder),
        "across": story.across.rows if story.across else none,
        "samples": story.profiled.samples if story.profiled else none,
        "anatomy-of-a-step": story.profiled.parts if story.profiled else none,
        "memory-over-time": story.profiled.points if story.profiled else none,
    }
