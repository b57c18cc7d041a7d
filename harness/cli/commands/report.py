"""`zoomgrad report`, and `conclude`, which writes a report and prints its tables, also for `zoomgrad run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import out, say_next, short
from zoomgrad.harness.cli.options import Run
from zoomgrad.harness.cli.stores import store_of
from zoomgrad.results.samples import CORRECTED
from zoomgrad.results.store import Store


@app.command()
def report(
    run: Run = None,
    into: Annotated[
        Optional[Path], typer.Option(file_okay=False, help="Folder to write index.html to, e.g. a web server's.")
    ] = None,
) -> None:
    """Rebuild a run's report, of this or another machine, from its records."""
    conclude(store_of(run), into)


def conclude(store: Store, into: Path | None = None) -> None:
    """Write the report, and print the results of every workload, the findings and the page's path."""
    # Imported late: pandas and matplotlib take seconds, which would delay the error about a missing run.
    from zoomgrad.reports import build
    from zoomgrad.reports.text.printed import printed

    story = build.tell(store, elsewhere=into is not None)
    page = build.write(store, story, into)
    for sheet in printed(story.view.table, story.view.headline_workload):
        out.print()
        if sheet.rows:
            rows = [tuple(figure.text for figure in row) for row in sheet.rows]
            out.print(display.table(sheet.title, sheet.headings, rows))
        for note in sheet.notes:
            out.print(note if sheet.rows else f"{sheet.title}: {note}", markup=False)
    if story.view.headline:
        out.print(CORRECTED)
    out.print()
    if story.peers and story.peers.sheets[0].names == 1:
        rows = [tuple(f"{one.text} {one.below}".strip() for one in row) for row in story.peers.sheets[0].rows]
        title = "fastest strict engine against the fastest peer: float64, one thread, time per step"
        out.print(display.table(title, story.peers.sheets[0].headings, rows), "")
    for sentence in story.findings:
        out.print(sentence, markup=False)
    for caution in story.cautions:
        out.print(f"Caution: {caution.cause} {caution.remedy}", markup=False)
    say_next(f"Open {short(page)}")
