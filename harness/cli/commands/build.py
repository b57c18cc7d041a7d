"""`zoomgrad build`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

import engines
from engines.api import Unavailable
from engines.kernel.building import BuildFailed
from engines.kernel.c_engine import CEngine
from engines.standalone.graph import Unfit
from harness import workloads
from harness.cli.app import FAILED, WRONG_USE, Engine, app, complain, out, say_next, short
from harness.cli.options import some_name
from harness.cli.preparing import fetch_data, with_project
from harness.standalone import graphs
from harness.standalone.folder import check_folder
from harness.standalone.make import Form, make
from results.printable import on_one_line


@app.command()
def build(
    what: Annotated[str, typer.Argument(metavar="WORKLOAD|SCRIPT", help="Name of a workload, or a .py file.")],
    into: Annotated[
        str, typer.Option(callback=some_name, metavar="FOLDER", help="A new folder, or that of an earlier build.")
    ],
    engine: Engine = "rerolled-tcc",
    form: Annotated[Form, typer.Option(help="An extension module for Python, or C with a header.")] = Form.module,
    frozen: Annotated[bool, typer.Option("--frozen", help="Weights as constants, forward pass only.")] = False,
) -> None:
    """Make a Python module, or C, from a workload or a script; it works without zoomgrad."""
    chosen = engines.load(engine)
    if not isinstance(chosen, CEngine):
        raise Unavailable(
            f"{engine} makes no C from a graph, so it can't make a standalone build",
            "Choose one that does, such as `--engine tcc` or `--engine rerolled-clang`.",
        )
    folder = Path(into)
    try:
        check_folder(folder)
        chosen.check()
        if is_script(what):
            graph = graphs.of_script(chosen, Path(what), with_project())
        else:
            workload = workloads.load(what)
            fetch_data([what])
            graph = graphs.of_workload(chosen, workload)
        with out.status(f"{engine} compiles {graph.origin}"):
            files = make(chosen, graph, folder, form, frozen=frozen)
    except Unfit as unfit:
        complain(str(unfit))
        raise typer.Exit(WRONG_USE) from None
    except BuildFailed as failed:
        complain(str(failed))
        raise typer.Exit(FAILED) from None
    for file in files:
        out.print(on_one_line(f"{short(folder / file)}  {(folder / file).stat().st_size:,} bytes"), markup=False)
    place = on_one_line(shlex.quote(short(folder)))
    if form is Form.module:
        say_next(f"Import it: `cd {place} && python -c 'import {graph.name}; help({graph.name})'`.")
    else:
        say_next(f"Compile it: {place}/README.md has the command.")


def is_script(what: str) -> bool:
    """Whether this names a script, not a workload. Raises Unfit if it does, but there is none."""
    if not what.endswith(".py") and "/" not in what:
        return False
    if not Path(what).is_file():
        raise Unfit(f"{what}: there is no such script", "Name a .py file, or a workload of `zoomgrad list`.")
    return True
