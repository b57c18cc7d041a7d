"""A run's folder -> its report in the same folder."""

from __future__ import annotations

from pathlib import Path

from reports import html, markdown
from results.store import Store, write_atomically


def build(store: Store) -> Path:
    """Write report.html and report.md beside the records; returns the page's path. Raises results.store.Unreadable."""
    run, records = store.run, store.records()
    write_atomically(store.folder / "report.md", markdown.render(run, records))
    page = store.folder / "report.html"
    write_atomically(page, html.render(run, records))
    return page
