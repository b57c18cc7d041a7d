"""`zoomgrad show`: print the intermediate forms of a step. `harness.stages` makes their text."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from zoomgrad import engines
from zoomgrad.harness import stages, workloads
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.options import Engine, Workload
from zoomgrad.harness.stages import Stage


@app.command()
def show(
    workload: Workload,
    engine: Engine = "tuple",
    stage: Annotated[Stage, typer.Option(help="Stage to print.")] = Stage.graph,
) -> None:
    """Print one step of a workload after a stage of the engine's pipeline."""
    sys.stdout.write(stages.text(engines.load(engine), workloads.load(workload), stage))
