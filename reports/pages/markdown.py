"""Story -> the report in short, in GitHub's Markdown, for a pull request, a job's summary or a page of the docs."""

from __future__ import annotations

from collections.abc import Iterable

from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.sections.first import CAPTION, headline, summary
from zoomgrad.reports.sections.history import History
from zoomgrad.reports.story import Story, story
from zoomgrad.reports.text.figures import Section, Sheet
from zoomgrad.reports.text.markdown import environment
from zoomgrad.reports.view import View
from zoomgrad.results.record import Record, Run


def render(run: Run, records: Iterable[Record], profile_index: ProfileIndex | None = None) -> str:
    """Render the report of a run as Markdown."""
    return page(story(run, records, profile_index))


def page(story: Story) -> str:
    """Render the same story as the HTML page, with the panels of the headline workload only."""
    panels = [panel for panel in story.panels if panel.workload == story.view.headline_workload]
    return (
        environment()
        .get_template("report.md.j2")
        .render(story=story, panels=panels, caption=f"{CAPTION} Without a rank: for comparison.")
    )


def history_page(history: History) -> str:
    """Render the history of a folder's runs."""
    return _section(Section("history", "", f"{history.lead} {history.finding}", (history.sheet,)))


def summary_page(view: View) -> str:
    """Render the README's table."""
    title = "".join(text for text, _ in headline(view))
    sheets = (sheet,) if (sheet := summary(view)) else ()
    return _section(Section("summary", "", title, sheets, (), (CAPTION,)))


def sheets_page(*sheets: Sheet) -> str:
    """Render tables for a page of the docs."""
    return _section(Section("", "", "", sheets))


def _section(section: Section) -> str:
    return environment().get_template("section.md.j2").render(section=section)
