"""`zoomgrad history`: a table and a chart of the speedups in a folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import complain, out, say_next, short
from zoomgrad.results.files import Unreadable
from zoomgrad.results.printable import printable
from zoomgrad.results.store import RUNS


@app.command()
def history(
    folder: Annotated[
        Path, typer.Argument(file_okay=False, show_default="results/runs", help="Folder of runs, from any machines.")
    ] = RUNS,
) -> None:
    """Show each machine's speedups from the first run to the newest."""
    if not folder.is_dir() or (folder / "run.json").exists():
        what = "is a single run, not a folder of runs" if folder.is_dir() else "no such folder"
        raise Unreadable(f"{short(folder)}: {what}\n  Name a folder that holds runs, or make some with `zoomgrad run`.")
    from zoomgrad.reports import build  # late, because pandas takes a second
    from zoomgrad.reports.pages.terminal import sheet_table

    with out.status(escape(f"reading {printable(short(folder))}")):
        past, left_out, page = build.write_history(folder)
    for line in left_out:
        complain(line)
    out.print("", sheet_table(past.lead, past.sheet), "")
    out.print(*past.sheet.notes, past.finding, sep="\n", markup=False)
    say_next(f"Open {short(page)}")
