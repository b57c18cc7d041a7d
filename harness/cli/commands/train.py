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
from zoomgrad.harness.worker.train import task


@app.command()
def train(
    workload: options.Workload,
    engine: options.Engine = "replay",
    epochs: Annotated[Optional[int], typer.Option(min=1, help="Most epochs. Default: the workload's number.")] = None,
    seed: Annotated[
        Optional[int], typer.Option(help="Seed of the starting parameters. Default: the workload's.")
    ] = None,
    interpreter: options.Interpreter = None,
) -> None:
    """Train: print the loss every two seconds, then the accuracy."""
    engines.load(engine)
    task(workload, epochs, seed)
    fetch_data([workload])
    code = run_worker(interpreter, "zoomgrad.harness.worker.train", json.dumps([engine, workload, epochs, seed]))
    if code:
        raise typer.Exit(code)
    say_next(f"Compare the engines on {workload}: `zoomgrad run --workloads {workload}`.")
