"""Run and records -> the same story, short, in GitHub's Markdown: for a pull request or a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterable

import jinja2

from reports.figures import Section
from reports.history import History
from reports.seen import Seen
from reports.story import Story, story
from results import units
from results.record import Record, Run

_ACTIVE = re.compile(r"([\\`*_\[\]|~])")


def render(run: Run, records: Iterable[Record], looks: Seen | None = None) -> str:
    """The report of a run as Markdown."""
    return page(story(run, records, looks))


def page(told: Story) -> str:
    """The same from a story told already."""
    return environment().get_template("report.md.j2").render(story=told, run=told.run, count=units.count)


def history_page(told: History) -> str:
    """The history of a folder's runs as Markdown."""
    return environment().get_template("history.md.j2").render(history=told)


def opening_page(section: Section) -> str:
    """What the README opens with."""
    return environment().get_template("opening.md.j2").render(section=section)


def environment() -> jinja2.Environment:
    """For templates of Markdown, in which no text can become markup."""
    return jinja2.Environment(  # noqa: S701  # autoescape is for HTML; `finalize` does it for Markdown
        loader=jinja2.PackageLoader("reports"),
        # Every `{{ }}` passes through here, so that no template can forget to escape.
        finalize=lambda value: escape(str(value)),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line: no tag, no link, no emphasis, no end of a table's cell."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ACTIVE.sub(r"\\\1", text)
