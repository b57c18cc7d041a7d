"""Engine and workload -> text of one step after a stage of the engine's pipeline, for `zoomgrad show`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.graph.draw import show
from zoomgrad.engines.handwritten.engine import ByHand
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.row import Row
from zoomgrad.harness.workloads import Workload


class Stage(StrEnum):
    """Stages that can be printed. An interpreted engine has only the graph."""

    graph = "graph"
    tape = "tape"
    loops = "loops"
    step = "step"
    source = "source"


ANOTHER = "an engine that has the stage, such as `--engine rerolled-tcc`"


def trace(engine: Row, workload: Workload) -> Graph:
    """Graph of the workload's first step. Raises Unavailable if the engine records no graph."""
    if engine.Value is None:
        raise Unavailable(
            f"{engine.name} runs whole models only, so it has no graph, nor a stage derived from one",
            f"Use --stage source, or {ANOTHER}.",
        )
    model = workload.model(engine.nn)
    inputs = [engine.Value(x) for x in workload.row(0)]
    outputs = workload.outputs(model, inputs)
    return Graph(workload.loss(model, inputs, outputs), inputs, model.parameters(), outputs)


def text(engine: Row, workload: Workload, stage: Stage) -> str:
    """Text of the step after that stage. Raises Unavailable if the engine lacks the stage."""
    if refusal := engine.supports(workload):
        raise Unavailable(f"{engine.name} can't run {workload.name}: {refusal}", "Choose another from `zoomgrad list`.")
    options = engine.options if engine.compiles else None
    if stage is Stage.source and isinstance(engine, ByHand):
        assert workload.network is not None
        return engine.source(workload.network)
    graph = trace(engine, workload)
    if stage is Stage.graph:
        return _joined(show(graph.loss))
    if not options:
        raise Unavailable(
            f"{engine.name} compiles nothing, so it has no stage {stage.value}", f"Use --stage graph, or {ANOTHER}."
        )
    tape = graph.tape()
    if stage is Stage.tape:
        return _joined(tape.lines())
    code = lower(tape, options, graph.numbers()[1])
    if stage is Stage.source:
        return text_of(code, options)
    if stage is Stage.loops and options.code == "loops" and not isinstance(code, Step):
        from zoomgrad.engines.rerolled.reroll import reroll  # which imports NumPy

        irregular = f"irregular: {engine.name} compiles straight lines instead of these loops (--stage source)"
        return _joined((*reroll(tape).lines(), irregular))
    if not isinstance(code, Step):
        raise Unavailable(
            f"{engine.name} compiles {workload.name} in straight lines, so it has no stage {stage.value}",
            f"Use --stage source, or {ANOTHER}.",
        )
    return _joined(code.loops.lines() if stage is Stage.loops else code.lines())


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
