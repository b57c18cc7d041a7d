"""`zoomgrad show`: print the intermediate forms of a step. `harness.stages` makes their text."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from zoomgrad import engines
from zoomgrad.engines.graph.draw import draw_dot
from zoomgrad.harness import stages, workloads
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.options import Engine, Workload
from zoomgrad.harness.stages import Stage


class Form(StrEnum):
    """Output formats of the graph."""

    text = "text"
    dot = "dot"
    svg = "svg"


@app.command()
def show(
    workload: Workload,
    engine: Engine = "tuple",
    stage: Annotated[Stage, typer.Option(help="Stage to print.")] = Stage.graph,
    form: Annotated[
        Form, typer.Option("--format", help="Format of the graph: rows of text, Graphviz DOT, or an SVG picture.")
    ] = Form.text,
) -> None:
    """Print one step of a workload after a stage of the engine's pipeline."""
    chosen, task = engines.load(engine), workloads.load(workload)
    if stage is Stage.graph and form is not Form.text:
        drawing = draw_dot(stages.trace(chosen, task).loss)
        sys.stdout.write(drawing.svg() if form is Form.svg else drawing)
    else:
        sys.stdout.write(stages.text(chosen, task, stage))
