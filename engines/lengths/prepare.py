"""Workload -> Trainer over several graphs that share parameters, or with an optimiser other than plain descent."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Shape, Unavailable, Workload
from zoomgrad.engines.columns import columns
from zoomgrad.engines.compile import kernel_of, tape_of
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.lower import lower_passes, sizes
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.graph.collector import paused
from zoomgrad.engines.graph.optimisers import Optimiser
from zoomgrad.engines.kernel.buffers import first_at_cache_line, zeros_at_cache_line
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.lengths.conductor import Conductor, ConductorInNumPy, Member
from zoomgrad.engines.lengths.in_machine_code import ConductorInMachineCode
from zoomgrad.engines.lengths.trainer import TrainerOfLengths
from zoomgrad.engines.machine.registers import OutOfRegisters
from zoomgrad.engines.native.build import recorder
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.recover.loops import Loops, Unlike
from zoomgrad.engines.rerolled.step.step import Step


def prepare_lengths(workload: Workload, options: Options) -> TrainerOfLengths:
    """Compile the graph of each shape, and the update by the workload's optimiser."""
    if options.code == "loops" and options.target != "NumPy":
        with suppress(Unlike):
            return _prepare(workload, options, in_place=True)
    return _prepare(workload, options, in_place=False)


def _prepare(workload: Workload, options: Options, *, in_place: bool) -> TrainerOfLengths:
    """in_place: whether kernels keep parameters and gradients in a workspace that they share. Raises Unlike."""
    clock = Clock()
    with paused():
        with clock.phase("trace"):
            model = workload.model(nn.bind(recorder()))
        clock.stop()  # from here on, each shape has its own clock
        members: list[Member] = []
        like: Optional[Loops] = None
        # The largest first: it usually reads all parameters.
        for shape in sorted(workload.shapes(), key=lambda shape: -len(shape.columns)):
            member, loops = _member(workload, model, shape, options, in_place, like, clock)
            members.insert(0, member)
            like = like or loops
        with clock.phase("load"):
            start = array("d", (parameter.data for parameter in model.parameters()))
            if all(isinstance(member.w, array) for member in members):  # kernels in C
                # One workspace for all stays in the processor's cache. Apart from parameters and gradients, a pass
                # reads only what was written in the same step.
                largest = max((member.w for member in members), key=len)
                members = [member._replace(w=largest) for member in members]
            if like:
                buffers, places = _in_workspace(members[0].w, like)
            else:
                buffers = [zeros_at_cache_line(len(start)) for _ in "pq"]
                places = list(range(len(start)))
            buffers += [zeros_at_cache_line(len(buffers[0])) for _ in workload.optimiser.states]
            conductor = conductor_of(workload.optimiser, options, members, buffers)
            trainer = TrainerOfLengths(workload, start, places, conductor, clock)
        clock.stop()
    return trainer


def _in_workspace(workspace: Any, loops: Loops) -> tuple[list[Doubles], list[int]]:
    """The parameters and gradients of a workspace, and the place of each parameter of the model among them."""
    first = first_at_cache_line(workspace)
    numbers: Any = memoryview(workspace)
    p, q = (numbers[first + area.start : first + area.stop] for area in map(loops.area, "pq"))
    indices, places = loops.indices_and_places()
    return [p, q], (places[indices.argsort()] - loops.area("p").start).tolist()


def conductor_of(
    optimiser: Optimiser, options: Options, members: Sequence[Member], buffers: Sequence[Doubles]
) -> Conductor:
    """What takes steps: machine code if the processor, the kernels and the optimiser allow it, else NumPy or Python."""
    if options.target in ("C", "machine", "NumPy"):
        with suppress(OutOfRegisters, Unavailable):
            return ConductorInMachineCode(optimiser, options.fast, members, buffers)
        with suppress(ImportError):
            return ConductorInNumPy(optimiser, members, buffers)
    return Conductor(optimiser, members, buffers)


def _member(
    workload: Workload, model: Any, shape: Shape, options: Options, in_place: bool, like: Optional[Loops], total: Clock
) -> tuple[Member, Optional[Loops]]:
    """The kernel of a shape, and its loops if they are in place. Adds phases and sizes to the clock of all shapes."""
    clock = Clock()
    tape, _, _ = tape_of(partial(trace, workload, workload.row(shape.rows[0]), model), clock)
    with clock.phase("lower"):
        code = lower_passes(tape, options, in_place=in_place, like=like)
        shape = shape._replace(columns=columns(shape.columns, tape.inputs))
    loops = code.loops if in_place and isinstance(code, Step) else None
    if in_place and (loops is None or (like is None and len(loops.indices_and_places()[0]) < tape.parameters)):
        raise Unlike
    clock.sizes.update(sizes(code, options))
    kernel = kernel_of(code, options, clock)
    clock.stop()
    total.add(clock)
    x, y = (array("d", bytes(8 * count)) for count in (tape.inputs, len(tape.outputs)))
    return Member(kernel, shape, x, kernel.workspace(), y), loops
