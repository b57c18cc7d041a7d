"""`zoomgrad report`, and `conclude`, which writes a report and prints its tables, also for `zoomgrad run`."""

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
from reports.measured.races import same_run
from reports.text.figures import Figure
from reports.text.printed import printed
from results.record import BASELINE
from results.store import Store, latest


@app.command()
def report(
    runs: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="RUN", help="Runs from any machine: ids, folders or files. Default: the newest."),
    ] = None,
    compare: Annotated[
        Optional[str],
        typer.Option(callback=some_name, help="Earlier run to compare speedups with: id, folder or file."),
    ] = None,
    into: Annotated[
        Optional[Path], typer.Option(file_okay=False, help="Folder to write index.html to, e.g. a web server's.")
    ] = None,
) -> None:
    """Rebuild a run's report from its records; speedups of further runs appear beside its own."""
    store, *others = [store_of(name) for name in runs or ()] or [latest()]
    against = store_of(compare) if compare else None
    _each_once([store, *others])
    _each_once([store, *filter(None, [against])])
    conclude(store, against, others, into)


def _each_once(stores: Sequence[Store]) -> None:
    """Refuse a run that is given twice: it would always agree with itself. Two folders may hold the same run."""
    for index, store in enumerate(stores):
        before = next((one for one in stores[:index] if same_run(one.run, store.run)), None)
        if before:
            places = " and ".join(short(one.place) for one in (before, store))
            complain(f"{places} are the same run\n  Name each run once: a run always agrees with itself.")
            raise typer.Exit(WRONG_USE)


def conclude(
    store: Store, against: Store | None = None, others: Sequence[Store] = (), into: Path | None = None
) -> None:
    """Write the report, and print the results of every workload, the findings and the page's path."""
    story = build.tell(store, against, others, elsewhere=into is not None)
    page = build.write(store, story, into)
    if against and not story.comparison:
        _nothing_in_common(f"{against.run.id} has no speedup in common with {story.view.run.id}")
    if others and not story.across:
        _nothing_in_common(f"no two of these {len(others) + 1} runs have a speedup in common")
    for sheet in printed(story.view.table, story.view.headline_workload):
        out.print()
        if sheet.rows:
            rows = [tuple(figure.text for figure in row) for row in sheet.rows]
            out.print(display.table(sheet.title, sheet.headings, rows))
        for note in sheet.notes:
            out.print(note if sheet.rows else f"{sheet.title}: {note}", markup=False)
    out.print()
    for sheet in story.versus.sheets if story.versus else ():
        rows = [tuple("\n".join(filter(None, (one.text, one.below))) for one in row) for row in sheet.rows]
        out.print(display.table(f"{sheet.title}: speed over {store.run.versus}'s", sheet.headings, rows), "")
    if story.peers and story.peers.sheets[0].names == 1:
        rows = [tuple(f"{one.text} {one.below}".strip() for one in row) for row in story.peers.sheets[0].rows]
        title = "fastest strict engine against the fastest peer: float64, one thread, time per step"
        out.print(display.table(title, story.peers.sheets[0].headings, rows), "")
    for sheet in story.frozen.sheets if story.frozen else ():
        for interpreter in dict.fromkeys(row[1].text for row in sheet.rows):
            found = [row for row in sheet.rows if row[1].text == interpreter]
            rows = [(row[0].text, *map(_change, row[2::2], row[3::2])) for row in found]
            title = f"{sheet.title} on {interpreter}: from a trainable program to a frozen one"
            out.print(display.table(title, ("engine", "compile", "step", "object"), rows), "")
    for sentence in story.findings:
        out.print(sentence, markup=False)
    for caution in story.cautions:
        out.print(f"Caution: {caution.cause} {caution.remedy}", markup=False)
    say_next(f"Open {short(page)}")


def _change(before: Figure, after: Figure) -> str:
    return f"{before.text} → {after.text}"


def _nothing_in_common(what: str) -> None:
    complain(f"{what}\n  Each run needs {BASELINE} and another engine on the same interpreter and workload.")
