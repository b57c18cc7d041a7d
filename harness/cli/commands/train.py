"""`zoomgrad train`: run `harness.worker.train` on one engine and display its events."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Annotated, Optional

import typer

from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import (
    FAILED,
    INTERRUPTED,
    Engine,
    OnInterpreter,
    app,
    complain,
    err,
    out,
    say_next,
    short,
)
from zoomgrad.harness.cli.options import some_name
from zoomgrad.harness.cli.preparing import fetch_data, python_of, with_project
from zoomgrad.harness.containment import descendants
from zoomgrad.harness.containment.running import end
from zoomgrad.harness.interrupts import uninterrupted
from zoomgrad.harness.machine.project import worker_command
from zoomgrad.harness.worker.train import Event, Settings, task
from zoomgrad.results.printable import printable

LINE_CHARACTERS = 1 << 20
"""Longest line that is read from a worker. An event has a few thousand characters."""


@app.command()
def train(
    workload: Annotated[str, typer.Argument(help="Workload; see `zoomgrad list`.")],
    engine: Engine = "replay",
    epochs: Annotated[Optional[int], typer.Option(min=1, help="Most epochs. Default: the workload's number.")] = None,
    tolerance: Annotated[
        Optional[float],
        typer.Option(help="Stop once the epoch's mean loss is below this (tour: once its metric is at or below this)."),
    ] = None,
    rate: Annotated[Optional[float], typer.Option(help="Learning rate of every update.")] = None,
    batch: Annotated[Optional[int], typer.Option(help="Steps between two updates.")] = None,
    names: Annotated[
        Optional[str],
        typer.Option(
            callback=some_name, metavar="FILE", help="For microgpt: train on the names in this file, one a line."
        ),
    ] = None,
    seed: Annotated[
        Optional[int], typer.Option(help="Seed of the starting parameters. Default: the workload's.")
    ] = None,
    load: Annotated[
        Optional[str],
        typer.Option(
            callback=some_name, metavar="FILE", help="Start from the parameters that an earlier training saved there."
        ),
    ] = None,
    save: Annotated[
        Optional[str],
        typer.Option(
            callback=some_name,
            metavar="FILE",
            help="Save the parameters as safetensors at the end. Replaces an earlier save, and no other file.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --save replace any file.")] = False,
    interpreter: OnInterpreter = None,
) -> None:
    """Train interactively with live loss and accuracy."""
    settings: Settings = {
        "engine": engine,
        "workload": workload,
        "epochs": epochs,
        "tolerance": tolerance,
        "rate": rate,
        "batch": batch,
        "names": names and str(Path(names).absolute()),
        "seed": seed,
        "load": load and str(Path(load).absolute()),
        "save": save and str(Path(save).absolute()),
        "force": force,
    }
    engines.load(engine)
    chosen = task(settings)
    fetch_data([workload])
    progress = display.TrainingProgress(out)
    try:
        code = _work(settings, python_of(interpreter), progress)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    for failure in progress.failures:
        complain(str(failure))
    if died := _death(code or 0, silent=not progress.failures, ended=progress.ended):
        complain(died)
        raise typer.Exit(FAILED)
    if progress.saved:
        out.print(f"Parameters: {printable(short(Path(progress.saved)))}", markup=False, soft_wrap=True)
    if progress.failures or code:
        raise typer.Exit(FAILED)
    it = "it" if chosen.description == workloads.load(workload).description else "the unchanged workload"
    say_next(f"Compare the engines on {it}: `zoomgrad run --workloads {workload}`.")


def _work(settings: Settings, python: Path, progress: display.TrainingProgress) -> int | None:
    """Train in a worker and show its events. Returns its exit code. Raises KeyboardInterrupt; the worker has ended."""
    command = worker_command(python, "zoomgrad.harness.worker.train", json.dumps(settings))
    descendants.adopt_orphans()
    known = descendants.children()
    with subprocess.Popen(  # noqa: S603  (a list of arguments)
        command, stdout=subprocess.PIPE, text=True, errors="replace", env=with_project(), start_new_session=True
    ) as worker:
        try:
            assert worker.stdout
            while line := worker.stdout.readline(LINE_CHARACTERS):
                event = _event(line)
                try:
                    with uninterrupted():  # an interrupted console would print the line again
                        progress.show(event or {})
                except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError):  # an engine's own output
                    err.print(printable(line.rstrip()), markup=False, soft_wrap=True)
            worker.wait()
        finally:
            with uninterrupted():
                code = worker.poll()
                end(worker, known)  # also ends compilers, which have their own process groups
                progress.close()
    return code


def _death(code: int, *, silent: bool, ended: bool) -> str | None:
    """How the worker died, and the remedy; None if it did not. silent: whether it reported no failure."""
    if code < 0:
        return f"The worker was killed by signal {-code}\n  Use fewer weights, or free memory."
    if silent and (code or not ended):  # an engine may exit with code 0
        return f"The worker ended with exit code {code}\n  Read its messages above."
    return None


def _event(line: str) -> Event | None:
    """Parse the event in a line; None if the worker or its engine printed something else."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None
