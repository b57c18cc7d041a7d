"""`zoomgrad export`: write a run's records or profiles in another tool's format. `reports.exports` has the formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import err, out, short
from zoomgrad.harness.cli.options import Run, named
from zoomgrad.harness.cli.stores import store_of
from zoomgrad.results import units
from zoomgrad.results.files import Unreadable, write_atomically

Format = Literal["csv", "github-action-benchmark", "pyperf", "speedscope"]
"""Keys of `reports.exports.EXPORTERS`, which is imported late because pandas takes a second."""


@app.command()
def export(
    form: Annotated[Format, typer.Option("--format", "-f", help="Format to write.")],
    run: Run = None,
    output: Annotated[
        Optional[str],
        named("--output", "-o", metavar="FILE", help="File to write, or - to print. Default: a file beside the run."),
    ] = None,
) -> None:
    """Write a run in another tool's format."""
    store = store_of(run)
    from zoomgrad.reports.exports import EXPORTERS, NoExport
    from zoomgrad.reports.exports.material import material_of

    exporter = EXPORTERS[form]
    try:
        made = exporter.export(material_of(store))
    except NoExport as error:
        raise Unreadable(str(error)) from None
    path = _write(made.text, output, store.file("export", exporter.FILE))
    console = err if path is None else out
    if made.left_out:
        without = f"{units.count(made.left_out, 'cell')} of the plan left out: no result"
        console.print(f"{without} to export; `zoomgrad report` gives the reason", markup=False, soft_wrap=True)
    console.print(exporter.USE.format(path=short(path) if path else "FILE"), markup=False, soft_wrap=True)


def _write(text: str, output: str | None, beside: Path) -> Path | None:
    """Write or print the export. Return the file's path, or None."""
    if output == "-":
        # As bytes, because text output would translate line endings.
        sys.stdout.buffer.write(text.encode())
        return None
    path = Path(output) if output else beside
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise Unreadable(f"{path} is a link, or not a file\n  Name a plain file, or print with `--output -`.")
    if not output:
        path.parent.mkdir(exist_ok=True)
    write_atomically(path, text)
    return path
