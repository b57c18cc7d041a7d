"""Workload -> Trainer over several graphs that share parameters, or with an optimiser other than plain descent.

Each length of a row has a graph, which is compiled on its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from zoomgrad.engines import nn
from zoomgrad.engines.api import Shape, Unavailable, Workload
from zoomgrad.engines.columns import columns
from zoomgrad.engines.compile import kernel_of, tape_of
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.lower import lower, sizes
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.graph.collector import paused
from zoomgrad.engines.graph.optimisers import Optimiser
from zoomgrad.engines.kernel.buffers import at_cache_line
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.lengths.conductor import Conductor, ConductorInNumPy, Member
from zoomgrad.engines.lengths.in_machine_code import ConductorInMachineCode
from zoomgrad.engines.lengths.trainer import TrainerOfLengths
from zoomgrad.engines.machine.registers import OutOfRegisters
from zoomgrad.engines.native.build import recorder
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.step.step import Step


def prepare_lengths(workload: Workload, options: Options) -> TrainerOfLengths:
    """Compile the graph of each shape, and the update by the workload's optimiser."""
    shapes = sorted(workload.shapes(), key=lambda shape: len(shape.columns))
    clock = Clock()
    with paused():
        with clock.phase("trace"):
            model = workload.model(nn.bind(recorder()))
        order = _order_of(workload, model, shapes[0], options, clock)
        members = _with_one_workspace([_member(workload, model, shape, options, order, clock) for shape in shapes])
        with clock.phase("load"):
            zeros = array("d", bytes(8 * len(order)))
            buffers = [at_cache_line(zeros) for _ in ("p", "q", *workload.optimiser.states)]
            parameters = model.parameters()
            buffers[0][:] = array("d", (parameters[index].data for index in order))
            conductor = conductor_of(workload.optimiser, options, members, buffers)
            trainer = TrainerOfLengths(workload, members, buffers, order, conductor, clock)
        clock.stop()
    return trainer


def conductor_of(
    optimiser: Optimiser, options: Options, members: Sequence[Member], buffers: Sequence[Doubles]
) -> Conductor:
    """What takes steps over the kernels.

    It is machine code, unless the kernels have no addresses, or the processor or the optimiser allows none. NumPy makes
    the updates of other kernels, except those of Python text.
    """
    if options.target in ("C", "machine"):
        with suppress(OutOfRegisters, Unavailable):
            return ConductorInMachineCode(optimiser, options.fast, members, buffers)
    if options.target in ("C", "machine", "NumPy"):
        with suppress(ImportError):
            return ConductorInNumPy(optimiser, members, buffers)
    return Conductor(optimiser, members, buffers)


def _with_one_workspace(members: Sequence[Member]) -> Sequence[Member]:
    """Members whose kernels in C share a workspace, which stays in the processor's cache from step to step.

    A pass expects nothing there but what the passes before it wrote in the same step.
    """
    if not all(isinstance(member.w, array) for member in members):
        return members
    largest = max((member.w for member in members), key=len)
    return [member._replace(w=largest) for member in members]


def _member(
    workload: Workload, model: Any, shape: Shape, options: Options, order: Sequence[int], total: Clock
) -> Member:
    """The kernel of a shape. Adds the time of each phase, and the sizes, to the clock of all shapes."""
    clock = Clock()
    tape, _, _ = tape_of(partial(trace, workload, workload.row(shape.rows[0]), order, model), clock)
    with clock.phase("lower"):
        code = lower(tape, options, trains=False)
        shape = shape._replace(columns=columns(shape.columns, tape.inputs))
    clock.sizes.update(sizes(code, options))
    kernel = kernel_of(code, options, clock)
    clock.stop()
    total.add(clock)
    x, y = (array("d", bytes(8 * count)) for count in (tape.inputs, len(tape.outputs)))
    return Member(kernel, shape, x, kernel.workspace(), y)


def _order_of(workload: Workload, model: Any, shape: Shape, options: Options, clock: Clock) -> list[int]:
    """The parameters in the order in which all kernels' callers keep them: that of the smallest kernel's workspace.

    A kernel with another order copies strided parameters and gradients for each row. Returns the index of each in
    the model.
    """
    order: list[int] = []
    if workload.varies and options.code == "loops":
        tape, _, _ = tape_of(partial(trace, workload, workload.row(shape.rows[0]), None, model), clock)
        with clock.phase("lower"):
            code = lower(tape, options, trains=False)
            if isinstance(code, Step):
                indices, places = code.loops.indices_and_places()
                order = indices[places.argsort()].tolist()
        clock.stop()
        clock.sizes.clear()  # the shape is traced again
    return list(dict.fromkeys([*order, *range(len(model.parameters()))]))
