"""`zoomgrad build`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from zoomgrad import engines
from zoomgrad.engines.kernel.building import BuildFailed
from zoomgrad.harness import built_module, workloads
from zoomgrad.harness.cli.app import FAILED, app
from zoomgrad.harness.cli.console import complain, out, say, say_next, short
from zoomgrad.harness.cli.options import Workload, named
from zoomgrad.harness.cli.preparing import fetch_data
from zoomgrad.results.files import Unreadable, write_atomically
from zoomgrad.results.printable import on_one_line


@app.command()
def build(
    workload: Workload, into: Annotated[str, named("--into", metavar="FOLDER", help="Folder for the files.")]
) -> None:
    """Keep the module that `tcc-extension` loads for a workload; it works without zoomgrad."""
    engine = engines.load("tcc-extension")
    engine.check()
    task = workloads.load(workload)
    fetch_data([workload])
    try:
        with out.status(f"{engine.name} compiles {workload}"):
            files = built_module.build(engine, task)
    except BuildFailed as failed:
        complain(str(failed))
        raise typer.Exit(FAILED) from None
    folder = Path(into)
    targets = [folder] if folder.exists() and not folder.is_dir() else [folder / name for name in files]
    if taken := [path for path in targets if os.path.lexists(path)]:
        raise Unreadable(f"{taken[0]} exists\n  Name another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(folder / name, content)
        say(on_one_line(f"{short(folder / name)}  {len(content):,} bytes"))
    place = on_one_line(shlex.quote(short(folder)))
    module = built_module.module_name(workload)
    say_next(f"Import it: `cd {place} && python -c 'import {module}; help({module})'`. README.md has an example.")
