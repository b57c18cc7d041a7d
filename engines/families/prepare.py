"""Workload -> Trainer over several graphs that share parameters, or with an optimiser other than plain descent.

The graphs of recovered loops in C share one kernel where their loops can be merged (`rerolled/merged`). Otherwise each
graph has its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.api import Shape, Store, Workload
from zoomgrad.engines.columns import columns
from zoomgrad.engines.compile import kernel_of
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.flags import flags_of
from zoomgrad.engines.compiled.lower import form_of_passes, lower_passes, sizes
from zoomgrad.engines.compiled.trace import networks, trace
from zoomgrad.engines.families import in_c
from zoomgrad.engines.families.conductor import Conductor
from zoomgrad.engines.families.lowering import lower_graphs
from zoomgrad.engines.families.trainer import NONE, Built, Conduct, FamilyTrainer
from zoomgrad.engines.graph.collector import COLLECTOR
from zoomgrad.engines.graph.optimisers import Optimiser
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.buffers import at_cache_line
from zoomgrad.engines.kernel.library import Library
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.fitted import fitted
from zoomgrad.engines.rerolled.merged.merge import Merged, merge
from zoomgrad.engines.rerolled.merged.places import Unmergeable
from zoomgrad.engines.rerolled.step.step import Step

BEFORE_MERGING = ("zeros skipped",)
"""Rearrangements to make before merging. If one of them applies, each graph gets its own kernel."""


class Family(NamedTuple):
    """Kernels of several graphs."""

    built: list[Built]
    order: list[int]
    """The index in the model of each parameter in the family's buffers; NONE for a gap, which no graph uses."""
    parameters: list[float]
    """The starting numbers in that order, 0.0 in gaps."""
    clock: Clock


class Traced(NamedTuple):
    """The graph of a shape, and how long its own stages took."""

    shape: Shape
    tape: Tape
    parameters: list[float]
    clock: Clock


def prepare_family(workload: Workload, options: Options, store: Optional[Store]) -> FamilyTrainer:
    """Compile the graphs of all shapes, and the update by the workload's optimiser."""
    shapes = sorted(workload.shapes(), key=lambda shape: len(shape.columns))
    # The conductor depends on no graph, so its compiler runs beside our own stages.
    with COLLECTOR.paused(), ThreadPoolExecutor(1) as beside:
        conductor = beside.submit(conductor_of, workload.optimiser, options)
        family = _family(workload, shapes, options, store)
        with family.clock.phase("compile"):
            conduct = conductor.result()
        family.clock.stop()
    return FamilyTrainer(
        workload,
        family.built,
        parameters=family.parameters,
        order=family.order,
        conduct=conduct,
        copy=at_cache_line if options.compiler else _copy,
        phases=family.clock.phases,
        sizes=family.clock.sizes,
    )


def conductor_of(optimiser: Optimiser, options: Options) -> Conduct:
    """What takes steps over the kernels of a family: in C, unless the kernels have no addresses."""
    if not options.compiler or options.target == "module":
        return partial(Conductor, optimiser)
    tool, flags = toolchains.find(options.compiler), flags_of(options)
    if not options.fast:
        # The update has the bits of the Python text, so leave out flags that change rounding.
        target = (flag for flag in flags if flag.startswith("-m") and flag not in toolchains.FUSED)
        flags = (*toolchains.STRICT, *(("-O2",) if options.compiler != "tcc" else ()), *target)
    width = fitted(options).width if options.code == "loops" else 1
    lib = in_c.load(tool, flags, optimiser, width, is_fast=options.fast)
    return partial(in_c.ConductorInC, lib, optimiser)


def merged(workload: Workload, options: Options) -> Merged:
    """The loops of all of a workload's graphs. Raises Unmergeable."""
    shapes = sorted(workload.shapes(), key=lambda shape: len(shape.columns))
    steps = lower_graphs(form_of_passes(options, BEFORE_MERGING), [_traced(workload, shape).tape for shape in shapes])
    return merge([step for step, _ in steps], has_vectors=fitted(options).width > 1)


def _copy(numbers: array[float]) -> Doubles:
    return numbers[:]


def _family(workload: Workload, shapes: Sequence[Shape], options: Options, store: Optional[Store]) -> Family:
    """The kernels of these shapes, which are in ascending order."""
    spent: list[Clock] = []
    if len(shapes) > 1 and options.merges:
        try:
            return _together(workload, shapes, options, store, spent)
        except Unmergeable:
            pass
    family = _apart(workload, shapes, options, store)
    for clock in spent:  # the time of the attempt counts
        clock.stop()
        for phase, seconds in clock.phases.items():
            family.clock.phases[phase] += seconds
    return family


def _traced(workload: Workload, shape: Shape, order: Optional[Sequence[int]] = None) -> Traced:
    """The tape of a shape's first row. order: the numbers of the parameters in the order of the tape."""
    clock = Clock()
    with clock.phase("trace"):
        graph = trace(workload, workload.row(shape.rows[0]), order)
    with clock.phase("lower"):
        tape = graph.tape()
        _, parameters = graph.numbers()
    with clock.phase("trace"):
        del graph
    clock.sizes["tape_rows"] = len(tape)
    clock.stop()
    return Traced(shape._replace(columns=columns(shape.columns, tape.inputs)), tape, parameters, clock)


def _together(
    workload: Workload, shapes: Sequence[Shape], options: Options, store: Optional[Store], spent: list[Clock]
) -> Family:
    """One kernel for all graphs. Raises Unmergeable, with the time until then in `spent`."""
    whole = Clock()
    spent.append(whole)
    traced: list[Traced] = []
    for shape in shapes:
        traced.append(_traced(workload, shape))
        spent.append(traced[-1].clock)
    with whole.phase("lower"):
        lowered = lower_graphs(form_of_passes(options, BEFORE_MERGING), [each.tape for each in traced])
        loops = merge([step for step, _ in lowered], has_vectors=fitted(options).width > 1)
    whole.stop()
    for each, (step, seconds) in zip(traced, lowered):
        each.clock.sizes.update(sizes(step, options))
        whole.add(each.clock)
        each.clock.phases["lower"] += seconds  # the clock of all graphs has this time already
    kernel = kernel_of(loops, options, whole, store)
    assert isinstance(kernel, Library)
    whole.stop()
    built = []
    for graph, each in enumerate(traced):
        # A race that loads a kept object has no compile times.
        seconds = sum(each.clock.phases.values()) if whole.phases else 0.0
        built.append(Built(each.shape, kernel.of_graph(graph), len(each.tape.outputs), seconds))
    order, parameters = loops.order.parameters, traced[-1].parameters
    return Family(built, order, [0.0 if index == NONE else parameters[index] for index in order], whole)


def _apart(workload: Workload, shapes: Sequence[Shape], options: Options, store: Optional[Store]) -> Family:
    """A kernel for each graph."""
    clock = Clock()
    order, parameters = _order_of(workload, shapes[0], options, clock)
    clock.stop()
    built = []
    for shape in shapes:
        traced = _traced(workload, shape, order)
        with traced.clock.phase("lower"):
            code = lower_passes(traced.tape, options)
        traced.clock.sizes.update(sizes(code, options))
        kernel = kernel_of(code, options, traced.clock, store)
        traced.clock.stop()
        seconds = sum(traced.clock.phases.values())
        built.append(Built(traced.shape, kernel, len(traced.tape.outputs), seconds))
        clock.add(traced.clock)
    return Family(built, order, parameters, clock)


def _order_of(workload: Workload, shape: Shape, options: Options, clock: Clock) -> tuple[list[int], list[float]]:
    """The parameters in the order in which a family keeps them: that of the workspace of its smallest kernel.

    A kernel with another order copies strided parameters and gradients for each row. Returns the index of each in
    the model, and its starting number.
    """
    if workload.varies and options.code == "loops":
        traced = _traced(workload, shape)
        traced.clock.sizes.clear()  # the shape is traced again
        clock.add(traced.clock)
        with clock.phase("lower"):
            places = _places(lower_passes(traced.tape, options))
        parameters = traced.parameters
    else:
        places, parameters = [], [p.data for p in workload.model(networks()).parameters()]
    chosen = dict.fromkeys(places)
    order = [*chosen, *(index for index in range(len(parameters)) if index not in chosen)]
    return order, [parameters[index] for index in order]


def _places(code: Any) -> list[int]:
    """The numbers of the parameters in the order of the kernel's workspace; empty without loops."""
    if not isinstance(code, Step):
        return []
    pairs: list[tuple[int, int]] = []
    for copy in code.loops.copies:
        pairs += zip(copy.place.places(copy.counts).tolist(), copy.parameter.places(copy.counts).tolist())
    return [index for _, index in sorted(pairs)]
