"""`zoomgrad report`, and the report that ends every run."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from harness import display
from harness.cli.app import app, err, out, say_next, short, store_of
from reports import build
from reports.headline import UNPLANNED
from reports.table import BASELINE
from results.store import Store, latest

ENGINE_COLUMNS, CELL_COLUMNS = 24, 18
"""Characters of a terminal that the headline takes for names, and for a time with its speedup."""


@app.command()
def report(
    run_: Annotated[Optional[str], typer.Argument(metavar="[RUN]", help="Id or folder; the newest.")] = None,
    compare: Annotated[Optional[str], typer.Option(help="Another run, to set its speedups against.")] = None,
) -> None:
    """Build a run's report again, from its records alone; beside another run's speedups, if one is named."""
    conclude(store_of(run_) if run_ else latest(), store_of(compare) if compare else None)


def conclude(store: Store, against: Store | None = None) -> None:
    """Write the report, print the headline, and say where to look."""
    told = build.tell(store, against)
    page = build.write(store, told)
    if against and not told.comparison:
        err.print(f"zoomgrad: {against.run.id} has no speedup in common with {told.run.id}", markup=False)
        err.print(f"  Both need {BASELINE} beside other engines, on the same interpreter and workload.", markup=False)
    top = told.headline
    if top:
        # Where there is no room for a time and its speedup side by side, they stand below each other.
        apart = " " if out.width > ENGINE_COLUMNS + CELL_COLUMNS * len(top.interpreters) else "\n"
        rows = [
            (
                rung.engine,
                *("" if e.status == UNPLANNED else f"{e.text}{apart}{e.speedup}".strip() for e in rung.entries),
            )
            for rung in top.rows
        ]
        names = [name if apart == " " else name.replace("-", apart, 1) for name in top.interpreters]
        title = f"{top.workload}: time a step, and speedup over baseline on the same interpreter"
        out.print("", display.table(title, ("engine", *names), rows), "")
    for sentence in told.verdict:
        out.print(sentence, markup=False)
    say_next(f"Open {short(page)}")
