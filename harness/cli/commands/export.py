"""`zoomgrad export`: write a run's records in the format of another tool. The formats are in `reports.exports`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad.engines.api import UnknownName
from zoomgrad.harness.cli.app import WRONG_USE, app, complain, err, out, short
from zoomgrad.harness.cli.options import some_name
from zoomgrad.harness.cli.stores import store_of
from zoomgrad.reports.exports import EXPORTERS, Export, Material, NoExport
from zoomgrad.reports.view import view
from zoomgrad.results import units
from zoomgrad.results.files import read_text, write_atomically
from zoomgrad.results.store import Store, latest


@app.command()
def export(
    form: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(EXPORTERS)}.")],
    run_: Annotated[
        Optional[str],
        typer.Argument(
            metavar="RUN", callback=some_name, help="Run to export: id, folder or file. Default: the newest."
        ),
    ] = None,
    output: Annotated[
        Optional[str],
        typer.Option(
            "--output", "-o", callback=some_name, help="File to write, or - to print. Default: a file beside the run."
        ),
    ] = None,
) -> None:
    """Write a run in another tool's format."""
    if form not in EXPORTERS:
        raise UnknownName("export format", form, EXPORTERS)
    exporter = EXPORTERS[form]
    store = store_of(run_) if run_ else latest()
    try:
        made = exporter.export(material(store))
        path = _write(made, output, store.export_file(exporter.FILE))
    except NoExport as error:
        complain(str(error))
        raise typer.Exit(WRONG_USE) from None
    said = err if path is None else out
    if made.left_out:
        without = f"{units.count(made.left_out, 'cell')} of the plan left out: no result"
        said.print(f"{without} to export; `zoomgrad report` gives the reason", markup=False, soft_wrap=True)
    said.print(exporter.USE.format(path=short(path) if path else "FILE"), markup=False, soft_wrap=True)


def material(store: Store) -> Material:
    """Collect an exporter's input from the run's files."""
    files = {cell: store.pyperf_file(cell) for cell in store.run.cells}
    suites = {cell: read_text(file) for cell, file in files.items() if file.exists()}
    return Material(view(store.run, store.records()), suites)


def _write(made: Export, output: str | None, beside: Path) -> Path | None:
    """Write or print the export. Return the file's path, or None if it was printed. Raises NoExport."""
    if output == "-":
        # As bytes, because text output would translate line endings.
        sys.stdout.buffer.write(made.text.encode())
        return None
    path = Path(output) if output else beside
    try:
        if not output:
            path.parent.mkdir(exist_ok=True)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise NoExport(f"{path} is a link, or not a file", "Name a plain file, or print with `--output -`.")
        write_atomically(path, made.text)
    except OSError as error:
        raise NoExport(f"{path} can't be written: {error.strerror}", "Name another file with --output.") from error
    return path
