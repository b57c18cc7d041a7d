"""The end of `check` and `compare`: their table on the terminal, as Markdown beside the run, or as one JSON object."""

from __future__ import annotations

from pathlib import Path

import typer

from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import FAILED, INTERRUPTED
from zoomgrad.harness.cli.console import out, say_json, say_next, short
from zoomgrad.reports.verdicts import VerdictTable
from zoomgrad.results.files import write_atomically

OF_RUNS = (
    "“takes” is the change of a time in steps of its run's baseline, new over old: median of blocks and 95 % interval. "
    "The seconds of two runs are never compared. “may take” is the limit. “slower”: the whole interval is beyond it; "
    "equal code is called slower in at most one comparison in a hundred. “unsure”: the interval includes the limit."
)
"""How to read a table of two runs."""


def conclude(
    table: VerdictTable,
    file: Path | None,
    *,
    as_json: bool,
    remedy: str = "",
    interrupted: bool = False,
) -> None:
    """Print the table and write it to the file, if there is one. Exits with 1 if the new side is worse.

    remedy: what to do if the new side is worse on purpose.
    """
    if file:
        write_atomically(file, table.markdown())
    if as_json:
        say_json(table.content())
    out.print("", display.table(table.title, table.headings, table.rows), "")
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
