"""`zoomgrad merge`: put runs of many machines into one run with one report."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from harness.cli.app import app
from harness.cli.stores import store_of
from results.fleet.merging import merge as merged


@app.command()
def merge(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Two runs or more: ids, folders or files.")],
) -> None:
    """Merge runs of many machines into one; speedups only, because seconds of different machines are never mixed."""
    if len(runs) < 2:
        raise typer.BadParameter("merge needs at least two runs; `zoomgrad report RUN` shows a single one")
    store = merged([store_of(name) for name in runs], ["zoomgrad", *sys.argv[1:]])
    from harness.cli.commands.report import conclude  # imported late, because of pandas and matplotlib

    conclude(store)
