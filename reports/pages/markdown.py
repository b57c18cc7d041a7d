"""Run and records -> the report in short, in GitHub's Markdown, for a pull request or a job's summary."""

from __future__ import annotations

from collections.abc import Iterable

from zoomgrad.reports.charts.drawing.svg import Drawing
from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.sections.history import History
from zoomgrad.reports.story import Story, story
from zoomgrad.reports.text.figures import Section
from zoomgrad.reports.text.markdown import environment
from zoomgrad.results import units
from zoomgrad.results.record import Record, Run


def render(run: Run, records: Iterable[Record], profile_index: ProfileIndex | None = None) -> str:
    """Render the report of a run as Markdown."""
    return page(story(run, records, profile_index))


def page(story: Story) -> str:
    """Render the same page from a story."""
    return environment().get_template("report.md.j2").render(story=story, run=story.view.run, count=units.count)


def history_page(history: History, chart: Drawing) -> str:
    """Render the history of a folder's runs as Markdown, with the words of its chart."""
    return environment().get_template("history.md.j2").render(history=history, chart=chart)


def summary_page(section: Section) -> str:
    """Render the README's table as Markdown."""
    return environment().get_template("summary.md.j2").render(section=section)


def results_page(section: Section) -> str:
    """Render the tables of docs/results.md as Markdown."""
    return environment().get_template("results.md.j2").render(section=section)
