"""Run and records -> one offline HTML file. Jinja2 escapes every text except the charts' SVG and the script.

The page's only script is inlined and allowed by its hash, so no other can run, whatever names and reasons contain.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import jinja2
import pandas as pd

from zoomgrad.reports.charts import charts
from zoomgrad.reports.charts.drawing.svg import Drawing, drawing
from zoomgrad.reports.discovery import left_out
from zoomgrad.reports.measured.contests import contests, grid
from zoomgrad.reports.measured.sequences import changing, values
from zoomgrad.reports.measured.table import in_order
from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.story import Story, story
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import Record, Run


def render(run: Run, records: Iterable[Record], profile_index: ProfileIndex | None = None) -> str:
    """Render the report of a run, complete or not, as one page that needs no network."""
    whole = story(run, records, profile_index)
    return page(whole, drawings(whole))


@dataclass(frozen=True)
class Download:
    """A file with the run's data, in the page itself or beside it."""

    name: str
    content: bytes
    """gzip, if the name ends in `.gz`."""
    path: str = ""
    """The file beside the page, if the page does not contain it."""

    @property
    def address(self) -> str:
        """The file, or the content as a data URI."""
        if self.path:
            return self.path
        kind = "application/gzip" if self.name.endswith(".gz") else "text/csv;charset=utf-8"
        return f"data:{kind};base64,{b64encode(self.content).decode()}"


def page(story: Story, drawn: Sequence[Drawing], downloads: Sequence[Download] = ()) -> str:
    """Render the same page from a story, drawn charts, and the data that it offers to save."""
    script, run = _script(), story.view.run
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            story=story,
            run=run,
            drawings=drawn,
            downloads=downloads,
            machine=_machine(run),
            count=units.count,
            script=script,
            script_hash=_hash(script),
        )
    )


def _machine(run: Run) -> str:
    """Name the machine in a line: processor, cores, memory, system; empty if the run does not say."""
    named = ("cpu", "processor", "cores", "memory", "architecture", "system")
    facts = {key: run.machine[key] for key in named if key in run.machine}
    return ", ".join(f"cores: {value}" if key == "cores" else value for key, value in facts.items())


def contents(body: str) -> list[tuple[str, str]]:
    """Return the anchor of every section of a page's body, with its title up to a comma, for the contents bar."""
    return [(anchor, title.partition(",")[0]) for anchor, title in re.findall(r'<h2 id="([^"]+)">([^<]+)</h2>', body)]


@cache
def environment() -> jinja2.Environment:
    """Return the environment for pages, in which no text can become markup. Cached: it keeps compiled templates."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("zoomgrad.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["contents"] = contents
    return made


def _script() -> str:
    # Read as text, which normalizes line ends to line feeds: a browser does the same before it hashes the script.
    return (resources.files("zoomgrad.reports") / "templates" / "report.js").read_text(encoding="utf-8")


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
    return {
        "headline": view.headline_rows,
        "peers": grid(contests(table, batches)),
        "sequences": _sequences(view),
        "anatomy-of-a-step": story.profiled.parts if story.profiled else none,
    }


def _sequences(view: View) -> pd.DataFrame:
    """Return the run sequences of the workload on which most cells change; of several, the headline's or the first."""
    names = sorted(in_order(view.ladder, "workload"), key=lambda name: name != view.headline_workload)
    found = [values(view.ladder[view.ladder["workload"] == name], view.records) for name in names]

    def cells(rows: pd.DataFrame) -> int:
        return len(changing(rows)[["engine", "interpreter"]].drop_duplicates())

    return max(found, key=cells, default=view.ladder)
