"""`zoomgrad train`: train on one engine in a worker, `harness.worker.train`, which prints the progress."""

from __future__ import annotations

import json
from typing import Annotated, Optional

import typer

from zoomgrad import engines
from zoomgrad.harness.cli import options
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import say_next
from zoomgrad.harness.cli.preparing import fetch_data, run_worker
from zoomgrad.harness.worker.train import Settings, task


@app.command()
def train(
    workload: options.Workload,
    engine: options.Engine = "replay",
    epochs: Annotated[Optional[int], typer.Option(min=1, help="Most epochs. Default: the workload's number.")] = None,
    tolerance: Annotated[
        Optional[float],
        typer.Option(help="Stop once the epoch's mean loss is below this (tour: once the metric is at or below this)."),
    ] = None,
    rate: Annotated[Optional[float], typer.Option(help="Learning rate of every update.")] = None,
    batch: Annotated[Optional[int], typer.Option(help="Steps between two updates.")] = None,
    seed: Annotated[
        Optional[int], typer.Option(help="Seed of the starting parameters. Default: the workload's.")
    ] = None,
    interpreter: options.Interpreter = None,
) -> None:
    """Train interactively with live loss and accuracy."""
    settings: Settings = {
        "engine": engine,
        "workload": workload,
        "epochs": epochs,
        "tolerance": tolerance,
        "rate": rate,
        "batch": batch,
        "seed": seed,
    }
    engines.load(engine)
    task(settings)
    fetch_data([workload])
    code = run_worker(interpreter, "zoomgrad.harness.worker.train", json.dumps(settings))
    if code:
        raise typer.Exit(code)
    say_next(f"Compare the engines on {workload}: `zoomgrad run --workloads {workload}`.")
