"""`zoomgrad report`, and `conclude`, which writes a report and prints its tables, also for `zoomgrad run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import out, say_next, short
from zoomgrad.harness.cli.options import Run
from zoomgrad.harness.cli.stores import store_of
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
    """Write the report, and print the results of every workload, the headline and the page's path."""
    from zoomgrad.reports import build  # late, because pandas takes a second
    from zoomgrad.reports.pages import terminal

    story = build.tell(store, elsewhere=into is not None)
    page = build.write(store, story, into)
    out.print(*terminal.page(story), sep="\n")
    say_next(f"Open {short(page)}")
