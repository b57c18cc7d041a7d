"""Story, sheets and tables -> what Rich prints on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # these import pandas, which takes a second
    from zoomgrad.reports.story import Story
    from zoomgrad.reports.text.figures import Sheet


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Group:
    """Table of text below its title. Markup in cells is printed literally."""
    made = Table(header_style="bold", box=None, pad_edge=False, collapse_padding=True)
    for index, column in enumerate(columns):
        made.add_column(column, overflow="fold", no_wrap=index == 0 or column == "engine")  # a name of the row
    for row in rows:
        made.add_row(*(escape(cell) for cell in row))
    # Rich would wrap the table's own title to the table's width.
    return Group(Text(title, style="italic"), made)


def sheet_table(title: str, sheet: Sheet) -> Group:
    """A sheet below its title."""
    return table(title, sheet.headings, [[figure.text for figure in row] for row in sheet.rows])


def page(story: Story) -> Iterator[RenderableType]:
    """Yield the results of every workload, then what the whole run shows.

    The headline's table comes last, because the end of the output is what a terminal shows.
    """
    from zoomgrad.results.samples import CORRECTED

    for panel in reversed(story.panels):
        sheet = panel.sheet
        yield ""
        yield sheet_table(sheet.title, sheet) if sheet.rows else Text(sheet.title)
        yield from map(Text, sheet.notes)
    if story.panels:
        yield from ("", CORRECTED, "")
    yield from map(Text, (story.title, f"{story.correctness} {story.coverage}".strip()))
    yield from (Text(f"Caution: {caution}") for caution in story.cautions)
