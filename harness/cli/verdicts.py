"""The end of `check` and `compare`: their table on the terminal, as Markdown beside the run, or as one JSON object."""

from __future__ import annotations

from pathlib import Path

import typer

from zoomgrad.harness.cli.app import FAILED, INTERRUPTED
from zoomgrad.harness.cli.console import out, say_json, say_next, short
from zoomgrad.reports.pages import terminal
from zoomgrad.reports.verdicts import VerdictTable
from zoomgrad.results.files import write_atomically


def conclude(
    table: VerdictTable, file: Path | None, *, as_json: bool, remedy: str = "", interrupted: bool = False
) -> None:
    """Print the table and write it to the file, if there is one. Exits with 1 if the new side is worse.

    remedy: what to do if the new side is worse on purpose.
    """
    if file:
        write_atomically(file, table.markdown())
    if as_json:
        say_json(table.content())
    out.print("", terminal.table(table.title, table.headings, table.rows), "")
    out.print(*table.notes, sep="\n", markup=False, soft_wrap=True)
    parts = (
        "Interrupted." if interrupted else "",
        table.sentence,
        f"For details read {short(file)}" if file else "",
        remedy if table.failed else "",
    )
    say_next(" ".join(filter(None, parts)))
    if interrupted or table.failed:
        raise typer.Exit(INTERRUPTED if interrupted else FAILED)
