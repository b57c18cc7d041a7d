"""`zoomgrad train`."""

from __future__ import annotations

import json
import subprocess
from typing import Annotated, Optional

import typer

import engines
from harness import display, workloads
from harness.cli.app import FAILED, INTERRUPTED, Engine, OnInterpreter, app, err, out, say_next
from harness.cli.measuring import fetch_data, python_of, with_project
from harness.worker.train import Settings


@app.command()
def train(
    workload: Annotated[str, typer.Argument(help="Name of a workload.")],
    engine: Engine = "replay",
    epochs: Annotated[Optional[int], typer.Option(min=1, help="At most so many; the workload's own number.")] = None,
    tolerance: Annotated[Optional[float], typer.Option(help="Stop once an epoch's mean loss is below.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Trainings, each from other starting parameters.")] = 1,
    interpreter: OnInterpreter = None,
) -> None:
    """Train by hand: live loss and accuracy, until a tolerance, repeated over seeds for a distribution."""
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
    with subprocess.Popen(  # noqa: S603  (a list of arguments)
        command, stdout=subprocess.PIPE, text=True, env=with_project(), start_new_session=True
    ) as worker:
        try:
            for line in worker.stdout or ():
                progress.show(json.loads(line))
        except KeyboardInterrupt:
            worker.terminate()
            raise typer.Exit(INTERRUPTED) from None
        finally:
            progress.close()
    for failure in progress.failures:
        err.print(f"zoomgrad: {failure}", markup=False, soft_wrap=True)
    if repeats > 1 and progress.ends:
        out.print(*display.distribution_lines(progress.ends), sep="\n")
    if progress.failures or worker.returncode:
        raise typer.Exit(FAILED)
    say_next(f"Race the engines on it: `zoomgrad run --workloads {workload}`.")
