"""`zoomgrad train`: run `harness.worker.train` on one engine and display its events."""

from __future__ import annotations

import json
import subprocess
from typing import Annotated, Optional

import typer

import engines
from harness import workloads
from harness.cli import display
from harness.cli.app import FAILED, INTERRUPTED, Engine, OnInterpreter, app, complain, err, out, say_next
from harness.cli.preparing import fetch_data, python_of, with_project
from harness.containment import descendants
from harness.containment.running import end
from harness.interrupts import uninterrupted
from harness.worker.train import Event, Settings
from results.printable import printable

LINE_CHARACTERS = 1 << 20
"""Longest line that is read from a worker. An event has a few thousand characters."""


@app.command()
def train(
    workload: Annotated[str, typer.Argument(help="Workload; see `zoomgrad list`.")],
    engine: Engine = "replay",
    epochs: Annotated[Optional[int], typer.Option(min=1, help="Most epochs. Default: the workload's number.")] = None,
    tolerance: Annotated[
        Optional[float],
        typer.Option(help="Stop when an epoch's mean loss is below this. Default: the workload's tolerance, if any."),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(min=1, help="Trainings from different starting parameters; with more than one, prints quartiles."),
    ] = 1,
    interpreter: OnInterpreter = None,
) -> None:
    """Train interactively with live loss and accuracy, over one seed or several."""
    engines.load(engine)
    workloads.load(workload)
    settings: Settings = {
        "engine": engine,
        "workload": workload,
        "epochs": epochs,
        "tolerance": tolerance,
        "repeats": repeats,
    }
    fetch_data([workload])
    command = [str(python_of(interpreter)), "-m", "harness.worker.train", json.dumps(settings)]
    progress = display.TrainingProgress(out)
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
                    progress.show(event or {})
                except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError):  # an engine's own output
                    err.print(printable(line.rstrip()), markup=False, soft_wrap=True)
            worker.wait()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        finally:
            with uninterrupted():
                code = worker.poll()
                end(worker, known)  # also ends compilers, which have their own process groups
                progress.close()
    for failure in progress.failures:
        complain(str(failure))
    if repeats > 1 and progress.ends:
        out.print(*display.distribution_lines(progress.ends), sep="\n")
    if progress.failures or code:
        raise typer.Exit(FAILED)
    say_next(f"Compare the engines on it: `zoomgrad run --workloads {workload}`.")


def _event(line: str) -> Event | None:
    """Parse the event in a line; None if the worker or its engine printed something else."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None
