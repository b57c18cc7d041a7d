"""Run and records -> one offline HTML file. Jinja2 escapes every text; only the charts' SVG passes as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import jinja2

from reports.charts import charts
from reports.story import Story, story
from reports.svg import Drawing, drawing
from results import units
from results.record import Record, Run


def render(run: Run, records: Iterable[Record]) -> str:
    """The report of a run as one page that needs no network, whatever state the run is in."""
    told = story(run, records)
    return page(told, drawings(told))


def page(told: Story, drawn: Sequence[Drawing]) -> str:
    """The same from a story told and charts drawn already."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        story=told, run=told.run, drawings=drawn, count=units.count
    )


def drawings(told: Story) -> list[Drawing]:
    """Every chart of the headline's workload; none where the plan is empty."""
    if told.headline is None:
        return []
    rows = told.table[told.table["workload"] == told.headline.workload]
    return [drawing(name, chart, rows) for name, chart in charts().items()]
