"""Graph -> Program: the stages of every compiled engine in order, and the time of each.

    graph -> Tape -> Code or Step -> source -> object -> Kernel -> Program
         linearize   lower        emit      build     load

`lower`, `emit` and `load` are in `compiled/`, `linearize` in `graph/`, and `build` in `kernel/building.py`. Only C is
built. A variant for another batch is emitted, built and loaded when training first needs it. Example: for `tcc`, the
graph of `a * b` becomes a tape of three rows, one multiplication, 3 kB of C, and an object, from which a Program calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.emit import emit
from zoomgrad.engines.compiled.flags import flags_of
from zoomgrad.engines.compiled.load import load
from zoomgrad.engines.compiled.lower import lower, sizes
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.graph.collector import paused
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.kernel.program import Kernel, Program
from zoomgrad.engines.machine.program import MachineCode, MachineKernel
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.emit.numpy_step import NumpyKernel
from zoomgrad.engines.rerolled.fitted import fitted
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.rerolled.step.variants import variant_for, variants_of
from zoomgrad.engines.straight.bytecode import Bytecode, Interpreter
from zoomgrad.engines.straight.python_source import PythonSource
from zoomgrad.engines.translated.rpython import Rows


@paused()  # until the code is freed: a collection would walk it
def compile(  # noqa: A001  (the verb of all that follows)
    trace: Callable[[], Graph], options: Options, clock: Clock, *, batch: int = 1
) -> Program:
    """Compile a graph, time each phase, and record the sizes of the results.

    trace: gives the graph. batch: the first batch to train with; code for others is compiled when needed.
    Raises the errors of `linearize`, BrokenTape, Unavailable if the compiler is missing, and BuildFailed if it fails.
    """
    tape, inputs, parameters = tape_of(trace, clock)
    with clock.phase("lower"):
        code = lower(tape, options, parameters)
    clock.sizes.update(sizes(code, options))
    variants = variants_of(code)
    first = variant_for(batch, variants)
    kernels = {first.name: kernel_of(first.code, options, clock)}

    def kernel_for(batch: int) -> Kernel:
        variant = variant_for(batch, variants)
        if variant.name not in kernels:
            kernels[variant.name] = kernel_of(variant.code, options, Clock())
        return kernels[variant.name]

    with clock.phase("load"):
        return Program(
            kernels[first.name],
            kernel_for,
            inputs=inputs,
            parameters=parameters,
            outputs=len(tape.outputs),
            clock=clock,
            tape=tape,
        )


def tape_of(trace: Callable[[], Graph], clock: Clock) -> tuple[Tape, list[float], list[float]]:
    """The tape of a graph, and the numbers of its inputs and parameters."""
    with clock.phase("trace"):
        graph = trace()
    with clock.phase("lower"):
        tape, numbers = graph.tape(), graph.numbers()
    with clock.phase("trace"):
        del graph  # it is much larger than the tape, and the next stages need memory
    clock.sizes["tape_rows"] = len(tape)
    return (tape, *numbers)


def kernel_of(code: Any, options: Options, clock: Clock) -> Kernel:
    """Generate, build and load."""
    with clock.phase("generate"):
        source = emit(code, options)
    if options.compiler:
        clock.sizes["vector_doubles"] = fitted(options).width if options.code == "loops" else 1
        return load(source, options, toolchains.find(options.compiler), flags_of(options), clock)
    if isinstance(source, Rows):
        return source.kernel(clock)
    if isinstance(source, Source):  # Python
        clock.sizes["source_bytes"] = source.size
    with clock.phase("compile" if isinstance(source, Source) else "load"):
        kernel: Kernel = KERNELS[type(source)](source) if type(source) in KERNELS else source
        return kernel


KERNELS: dict[type, Callable[[Any], Kernel]] = {
    Step: NumpyKernel,
    MachineCode: MachineKernel,
    Bytecode: Interpreter,
    Source: PythonSource,
}
"""Kind of source that is not C -> the kernel that runs it."""
