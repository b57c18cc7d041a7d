"""Graphs of one function -> their Programs. Graphs of recovered loops in C share one kernel if their loops merge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from zoomgrad.engines.compile import compile as compile_graph
from zoomgrad.engines.compile import kernel_of
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.lower import form_of_passes
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.families.lowering import lower_graphs
from zoomgrad.engines.families.prepare import BEFORE_MERGING
from zoomgrad.engines.families.trainer import NONE, SPARE
from zoomgrad.engines.graph.collector import COLLECTOR
from zoomgrad.engines.kernel.library import Library
from zoomgrad.engines.kernel.object_cache import of_user
from zoomgrad.engines.kernel.program import Program
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.fitted import fitted
from zoomgrad.engines.rerolled.merged.merge import merge
from zoomgrad.engines.rerolled.merged.places import Unmergeable


class Programs(NamedTuple):
    """A Program for each graph. Their buffers of inputs may be longer than the inputs."""

    programs: list[Program]
    order: list[int]
    """The number of each parameter in their buffers; NONE for a gap."""
    is_one: bool
    """Whether they share a kernel."""


def compile_together(graphs: Sequence[Graph], options: Options) -> Programs:
    """Compile graphs that have the same parameters. Raises the errors of `compile`."""
    if len(graphs) > 1 and options.merges:
        try:
            return _merged(graphs, options)
        except Unmergeable:
            pass
    programs = [compile_graph(partial(_itself, graph), options, Clock(), store=of_user()) for graph in graphs]
    return Programs(programs, [*range(len(graphs[0].parameters))], is_one=False)


def _itself(graph: Graph) -> Graph:
    return graph


def _merged(graphs: Sequence[Graph], options: Options) -> Programs:
    """Programs over one kernel. Raises Unmergeable."""
    clock = Clock()
    with COLLECTOR.paused():
        with clock.phase("lower"):
            tapes = [graph.tape() for graph in graphs]
            ascending = sorted(range(len(tapes)), key=lambda number: len(tapes[number]))
            lowered = lower_graphs(form_of_passes(options, BEFORE_MERGING), [tapes[number] for number in ascending])
            loops = merge([step for step, _ in lowered], has_vectors=fitted(options).width > 1)
        kernel = kernel_of(loops, options, clock, of_user())
    assert isinstance(kernel, Library)
    clock.stop()
    programs = []
    for number, (graph, tape) in enumerate(zip(graphs, tapes)):
        inputs, numbers = graph.numbers()
        programs.append(
            Program(
                kernel.of_graph(ascending.index(number)),
                inputs=[*inputs, *[0.0] * SPARE],
                parameters=[0.0 if index == NONE else numbers[index] for index in loops.order.parameters],
                outputs=len(tape.outputs),
                phases=clock.phases,
                sizes=clock.sizes,
                tape=tape,
            )
        )
    return Programs(programs, loops.order.parameters, is_one=True)
