"""A run's folder -> its report in the same folder."""

from __future__ import annotations

from pathlib import Path

from reports import html, markdown
from reports.story import story
from reports.svg import standalone
from results.store import Store, write_atomically


def build(store: Store) -> Path:
    """Write report.html, report.md and the charts as files beside the records; returns the page's path.

    Raises results.store.Unreadable.
    """
    run, records = store.run, store.records()
    told = story(run, records)
    drawn = html.drawings(told)
    charts = store.folder / "charts"
    charts.mkdir(exist_ok=True)
    for drawing in drawn:
        write_atomically(charts / f"{drawing.name}.svg", standalone(drawing))
    write_atomically(store.folder / "report.md", markdown.render(run, records))
    page = store.folder / "report.html"
    write_atomically(page, html.page(told, drawn))
    return page
