"""`zoomgrad show`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

import engines
from engines.graph.draw import draw_dot
from harness import stages, workloads
from harness.cli.app import Engine, app
from harness.stages import Stage


class Form(StrEnum):
    """How `show` prints a graph."""

    text = "text"
    dot = "dot"
    svg = "svg"


@app.command()
def show(
    workload: Annotated[str, typer.Argument(help="Name of a workload.")],
    engine: Engine = "tuple",
    stage: Annotated[Stage, typer.Option(help="What to print.")] = Stage.graph,
    form: Annotated[Form, typer.Option("--format", help="Rows of text, Graphviz DOT, or the picture.")] = Form.text,
) -> None:
    """Print one step of a workload as the engine sees it, after a stage."""
    chosen, task = engines.load(engine), workloads.load(workload)
    if stage is Stage.graph and form is not Form.text:
        drawing = draw_dot(stages.trace(chosen, task).loss)
        sys.stdout.write(drawing.svg() if form is Form.svg else drawing)
    else:
        sys.stdout.write(stages.text(chosen, task, stage))
