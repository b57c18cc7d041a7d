"""Story -> the report in short, in GitHub's Markdown, for a pull request, a job's summary or a page of the docs."""

from __future__ import annotations

from zoomgrad.reports.sections.first import CAPTION
from zoomgrad.reports.sections.history import History
from zoomgrad.reports.story import Story
from zoomgrad.reports.text.figures import Section, Sheet
from zoomgrad.reports.text.markdown import environment


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


def sheets_page(*sheets: Sheet) -> str:
    """Render tables for a page of the docs."""
    return _section(Section("", "", "", sheets))


def _section(section: Section) -> str:
    return environment().get_template("section.md.j2").render(section=section)
