"""Workload -> Trainer over several graphs that share parameters, or with an optimiser other than plain descent.

Each length of a row has a graph, which is compiled on its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any

from zoomgrad.engines import nn
from zoomgrad.engines.api import Shape, Workload
from zoomgrad.engines.columns import columns
from zoomgrad.engines.compile import kernel_of, tape_of
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.lower import lower, sizes
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.graph.collector import paused
from zoomgrad.engines.graph.optimisers import Optimiser
from zoomgrad.engines.lengths.conductor import Conductor, ConductorInNumPy, Member
from zoomgrad.engines.lengths.in_machine_code import conductor_in_machine_code
from zoomgrad.engines.lengths.trainer import Conduct, TrainerOfLengths
from zoomgrad.engines.native.build import recorder
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.step.step import Step


def prepare_lengths(workload: Workload, options: Options) -> TrainerOfLengths:
    """Compile the graph of each shape, and the update by the workload's optimiser."""
    shapes = sorted(workload.shapes(), key=lambda shape: len(shape.columns))
    clock = Clock()
    with paused():
        order, parameters = _order_of(workload, shapes[0], options, clock)
        members = [_member(workload, shape, options, order, clock) for shape in shapes]
        with clock.phase("load"):
            trainer = TrainerOfLengths(
                workload,
                members,
                parameters=parameters,
                order=order,
                conduct=conductor_of(workload.optimiser, options),
                clock=clock,
            )
        clock.stop()
    return trainer


def conductor_of(optimiser: Optimiser, options: Options) -> Conduct:
    """What takes steps over the kernels: in machine code, unless the kernels have no addresses."""
    if options.target in ("C", "machine"):
        return partial(conductor_in_machine_code, optimiser, options.fast)
    return partial(ConductorInNumPy if options.code == "loops" else Conductor, optimiser)


def _member(workload: Workload, shape: Shape, options: Options, order: Sequence[int], total: Clock) -> Member:
    """The kernel of a shape. Adds the time of each phase, and the sizes, to the clock of all shapes."""
    clock = Clock()
    tape, _, _ = tape_of(partial(trace, workload, workload.row(shape.rows[0]), order), clock)
    with clock.phase("lower"):
        code = lower(tape, options, trains=False)
        shape = shape._replace(columns=columns(shape.columns, tape.inputs))
    clock.sizes.update(sizes(code, options))
    kernel = kernel_of(code, options, clock)
    clock.stop()
    total.add(clock)
    x, y = (array("d", bytes(8 * count)) for count in (tape.inputs, len(tape.outputs)))
    return Member(kernel, shape, x, kernel.workspace(), y)


def _order_of(workload: Workload, shape: Shape, options: Options, clock: Clock) -> tuple[list[int], list[float]]:
    """The parameters in the order in which all kernels' callers keep them: that of the smallest kernel's workspace.

    A kernel with another order copies strided parameters and gradients for each row. Returns the index of each in
    the model, and its starting number.
    """
    if workload.varies and options.code == "loops":
        tape, _, parameters = tape_of(partial(trace, workload, workload.row(shape.rows[0])), clock)
        with clock.phase("lower"):
            places = _places(lower(tape, options, trains=False))
        clock.stop()
        clock.sizes.clear()  # the shape is traced again
    else:
        places, parameters = [], [p.data for p in workload.model(nn.bind(recorder())).parameters()]
    chosen = dict.fromkeys(places)
    order = [*chosen, *(index for index in range(len(parameters)) if index not in chosen)]
    return order, [parameters[index] for index in order]


def _places(code: Any) -> list[int]:
    """The numbers of the parameters in the order of the kernel's workspace; empty without loops."""
    if not isinstance(code, Step):
        return []
    indices, places = code.loops.indices_and_places()
    order: list[int] = indices[places.argsort()].tolist()
    return order
