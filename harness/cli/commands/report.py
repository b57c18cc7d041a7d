"""`zoomgrad report`, and the report that ends every run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from harness.cli import display
from harness.cli.app import WRONG_USE, app, complain, out, say_next, short
from harness.cli.options import some_name
from harness.cli.stores import store_of
from reports import build
from reports.measured.headline import UNPLANNED
from reports.measured.races import same_run
from results.record import BASELINE
from results.store import Store, latest

ENGINE_COLUMNS, CELL_COLUMNS = 24, 18
"""Characters of a terminal that the headline takes for names, and for a time with its speedup."""


@app.command()
def report(
    runs: Annotated[
        Optional[list[str]], typer.Argument(metavar="RUN", help="Ids, folders or files, of any machine; the newest.")
    ] = None,
    compare: Annotated[
        Optional[str], typer.Option(callback=some_name, help="Another run, to set its speedups against.")
    ] = None,
    into: Annotated[
        Optional[Path], typer.Option(file_okay=False, help="Write index.html there, for a web server to show.")
    ] = None,
) -> None:
    """Build the first run's report again, from records alone; other runs' speedups stand beside its own."""
    store, *others = [store_of(name) for name in runs or ()] or [latest()]
    against = store_of(compare) if compare else None
    _each_once([store, *others])
    _each_once([store, *filter(None, [against])])
    conclude(store, against, others, into)


def _each_once(stores: Sequence[Store]) -> None:
    """A run beside itself would always agree. Two folders may hold the same run."""
    for index, store in enumerate(stores):
        before = next((one for one in stores[:index] if same_run(one.run, store.run)), None)
        if before:
            places = " and ".join(short(one.place) for one in (before, store))
            complain(f"{places} are the same run\n  Name each run once: beside itself it would only agree.")
            raise typer.Exit(WRONG_USE)


def conclude(
    store: Store, against: Store | None = None, others: Sequence[Store] = (), into: Path | None = None
) -> None:
    """Write the report, print the headline, and say where to look."""
    story = build.tell(store, against, others, elsewhere=into is not None)
    page = build.write(store, story, into)
    if against and not story.comparison:
        _nothing_in_common(f"{against.run.id} has no speedup in common with {story.view.run.id}")
    if others and not story.across:
        _nothing_in_common(f"no two of these {len(others) + 1} runs have a speedup in common")
    top = story.view.headline
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
    for sentence in story.findings:
        out.print(sentence, markup=False)
    for caution in story.cautions:
        out.print(f"Caution: {caution.cause} {caution.remedy}", markup=False)
    say_next(f"Open {short(page)}")


def _nothing_in_common(what: str) -> None:
    complain(f"{what}\n  Both need {BASELINE} beside other engines, on the same interpreter and workload.")
