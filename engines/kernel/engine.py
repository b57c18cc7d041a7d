"""A compiled engine: trace, lower, generate, compile and load, with the time of each."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from time import perf_counter
from typing import Any, Callable, NamedTuple, Optional

from zoomgrad.engines.api import Shape, Store, Trainer, Unavailable, Workload
from zoomgrad.engines.columns import columns
from zoomgrad.engines.domain import DOMAIN_ERRORS, tell_domain_error
from zoomgrad.engines.families.conductor import Conductor
from zoomgrad.engines.families.trainer import Built, Conduct, FamilyTrainer
from zoomgrad.engines.graph.collector import COLLECTOR
from zoomgrad.engines.graph.linearize import linearize
from zoomgrad.engines.graph.optimisers import SGD, Optimiser
from zoomgrad.engines.graph.passes import optimize
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel import object_cache
from zoomgrad.engines.kernel.building import BuildFailed, Waiting
from zoomgrad.engines.kernel.program import Doubles, Kernel, Program
from zoomgrad.engines.kernel.trainer import CompiledTrainer
from zoomgrad.engines.native.recorder import recorder
from zoomgrad.engines.value_engine import ValueEngine

PHASES = ("trace", "lower", "generate", "compile", "load")


class Clock:
    """Seconds by phase, 0 for phases that an engine lacks, and the sizes of the results.

    Every moment from the start of the first phase until `stop` belongs to one phase, so the phases add up to that time.
    """

    def __init__(self) -> None:
        self.phases = dict.fromkeys(PHASES, 0.0)
        self.sizes: dict[str, float] = {}
        self._phase: Optional[str] = None
        self._since = 0.0

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Start that phase, or continue it. It lasts until the next one starts, so it includes what follows the block.

        When the block ends, `phases` includes it.
        """
        self._turn_to(name)
        yield
        self._turn_to(name)

    def add(self, other: Clock) -> None:
        """Add the phases and sizes of another clock, which has stopped."""
        for phase, seconds in other.phases.items():
            self.phases[phase] += seconds
        rows, share = self.sizes.get("tape_rows", 0.0), self.sizes.get("looped_share", 0.0)
        for name, size in other.sizes.items():
            if name in ("parallel_compilers", "vector_doubles"):
                self.sizes[name] = max(self.sizes.get(name, 0), size)
            elif name != "looped_share":
                self.sizes[name] = self.sizes.get(name, 0) + size
        if "looped_share" in other.sizes:
            total = self.sizes["tape_rows"]
            self.sizes["looped_share"] = (rows * share + other.sizes["tape_rows"] * other.sizes["looped_share"]) / total

    def stop(self) -> None:
        """End the last phase."""
        self._turn_to(None)

    def _turn_to(self, name: Optional[str]) -> None:
        now = perf_counter()
        if self._phase in self.phases:  # it is not if an engine has cleared the phases
            self.phases[self._phase] += now - self._since
        self._phase, self._since = name, now


class Order(NamedTuple):
    """How to build a kernel."""

    objects: Optional[Store]
    batch: int = 1
    """The first batch to train with, if the kernel has variants."""
    compilers: Optional[Waiting] = None
    is_passes: bool = False
    """Whether only its passes are called, as in a family, whose conductor updates the parameters."""
    name: Optional[Callable[[], str]] = None
    """Computes the name of the object in a user's cache; by default, it is named by its source."""


class Family(NamedTuple):
    """Kernels of several graphs."""

    built: list[Built]
    order: list[int]
    """The index in the model of each parameter in the family's buffers; NONE for a gap, which no graph uses."""
    parameters: list[float]
    """The starting numbers in that order, 0.0 in gaps."""
    clock: Clock


class CompiledEngine(ValueEngine):
    """An engine that runs a recorded graph as a Program. Subclasses turn the tape into a kernel."""

    @cached_property
    def Value(self) -> Any:  # noqa: N802  (a class)
        """The class that records: in C where it can be built, else in Python."""
        return recorder()

    def check(self) -> None:
        """Build the recorder now, so that no timed phase does."""
        recorder()

    def lower(self, tape: Tape) -> Any:
        """Convert the tape to the back end's input."""
        raise NotImplementedError

    def lower_workload(self, tape: Tape, parameters: Sequence[float]) -> Any:
        """Convert a workload's tape to the back end's input. parameters: their starting numbers."""
        return self.lower(tape)

    def lower_passes(self, tape: Tape) -> Any:
        """Convert a tape to the back end's input for a kernel of which only the two passes are called."""
        return self.lower(tape)

    def sizes(self, code: Any) -> Mapping[str, float]:
        """Figures for the record, besides the tape's rows."""
        return {}

    def source(self, code: Any) -> str:
        """The back end's output for the code, as text. Raises Unavailable if it has none."""
        raise Unavailable(f"{self.name} generates no text, so it has no stage source", "Use --stage tape.")

    def compilers(self, clock: Clock, objects: Optional[Store]) -> contextlib.AbstractContextManager[Optional[Waiting]]:
        """Start a compiler early, if `build` can use it."""
        return contextlib.nullcontext()

    def build(self, code: Any, clock: Clock, order: Order) -> Kernel:
        """Generate, compile and load, and time each."""
        raise NotImplementedError

    def kernel_of(self, tape: Tape, parameters: Sequence[float], clock: Clock, order: Order) -> Kernel:
        """Lower the tape and build the result, and time each."""
        if order.compilers:
            with clock.phase("compile"), contextlib.suppress(BuildFailed):  # one may be enough
                order.compilers.add()
        with clock.phase("lower"):
            code = self.lower_passes(tape) if order.is_passes else self.lower_workload(tape, parameters)
            clock.sizes.update(self.sizes(code))
        return self.build(code, clock, order)

    def compile(
        self,
        loss: Any,
        *,
        inputs: Sequence[Any],
        parameters: Sequence[Any],
        outputs: Sequence[Any] = (),
    ) -> Program:
        """Compile the graph below `loss`. Leaves that are neither inputs nor parameters are constants.

        outputs: Values whose data each forward pass returns. Raises the errors of `linearize`, BrokenTape for a
        constant that is not finite, Unavailable if the compiler is missing, and BuildFailed if it fails.
        """
        clock, objects = Clock(), object_cache.of_user()
        with COLLECTOR.paused(), self.compilers(clock, objects) as compilers:
            with clock.phase("lower"):
                tape = self.tape(loss, inputs=inputs, parameters=parameters, outputs=outputs)
            numbers = [v.data for v in inputs], [v.data for v in parameters]
            program = self._compile(clock, tape, *numbers, Order(objects, compilers=compilers))
            program.tape = tape
        clock.stop()
        return program

    def tape(self, loss: Any, *, inputs: Sequence[Any], parameters: Sequence[Any], outputs: Sequence[Any] = ()) -> Tape:
        """The tape after all passes, as it is compiled."""
        return optimize(linearize(loss, inputs=inputs, parameters=parameters, outputs=outputs))

    def prepare(self, workload: Workload, *, objects: Optional[Store] = None) -> Trainer:
        if workload.varies or (workload.learns and workload.optimiser is not SGD):
            return self._prepare_family(workload, objects)
        clock = Clock()
        with COLLECTOR.paused(), self.compilers(clock, objects) as compilers:
            # No name for the tape here: it is freed when `_compile` returns, while the clock still runs.
            order = Order(objects, workload.batch, compilers)
            program = self._compile(clock, *self._record(clock, workload, workload.row(0)), order)
            trainer = CompiledTrainer(program, workload)
        clock.stop()
        return trainer

    def _prepare_family(self, workload: Workload, objects: Optional[Store]) -> FamilyTrainer:
        """A kernel for each length of a row, and an update by the workload's optimiser."""
        shapes = sorted(workload.shapes(), key=lambda shape: len(shape.columns))
        # The conductor depends on no graph, so its compiler runs beside our own stages.
        with COLLECTOR.paused(), ThreadPoolExecutor(1) as beside:
            conductor = beside.submit(self.conductor, workload.optimiser)
            family = self.family(workload, shapes, objects)
            with family.clock.phase("compile"):
                conduct = conductor.result()
            family.clock.stop()

        return FamilyTrainer(
            workload,
            family.built,
            parameters=family.parameters,
            order=family.order,
            conduct=conduct,
            copy=self.shared_copy,
            phases=family.clock.phases,
            sizes=family.clock.sizes,
        )

    def family(self, workload: Workload, shapes: Sequence[Shape], objects: Optional[Store]) -> Family:
        """The kernels of these shapes, which are in ascending order."""
        clock = Clock()
        order, parameters = self._order_of(clock, workload, shapes[0])
        clock.stop()
        built = []
        for shape in shapes:
            member, its = self._member_of(workload, shape, order, objects)
            built.append(member)
            clock.add(its)
        return Family(built, order, parameters, clock)

    def _member_of(
        self, workload: Workload, shape: Shape, order: Sequence[int], objects: Optional[Store]
    ) -> tuple[Built, Clock]:
        """The kernel of a shape, and how long it took."""
        clock = Clock()
        tape, inputs, parameters = self._record(clock, workload, workload.row(shape.rows[0]), order)
        clock.sizes["tape_rows"] = len(tape)
        checked = shape._replace(columns=columns(shape.columns, len(inputs)))
        kernel = self.kernel_of(tape, parameters, clock, Order(objects, is_passes=True))
        clock.stop()
        return Built(checked, kernel, len(tape.outputs), sum(clock.phases.values())), clock

    def _order_of(self, clock: Clock, workload: Workload, shape: Shape) -> tuple[list[int], list[float]]:
        """The parameters in the order in which a family keeps them: that of the workspace of its smallest kernel.

        A kernel with another order copies strided parameters and gradients for each row. Returns the index of each in
        the model, and its starting number.
        """
        if workload.varies and self.orders_parameters:
            tape, _, parameters = self._record(clock, workload, workload.row(shape.rows[0]))
            with clock.phase("lower"):
                found = self.parameter_order(self.lower_passes(tape))
        else:
            found, parameters = [], [p.data for p in workload.model(self.nn).parameters()]
        chosen = dict.fromkeys(found)
        order = [*chosen, *(index for index in range(len(parameters)) if index not in chosen)]
        return order, [parameters[index] for index in order]

    orders_parameters = False
    """Whether `parameter_order` may differ from the model's order."""

    def parameter_order(self, code: Any) -> list[int]:
        """The numbers of the parameters in the order of the kernel's workspace."""
        raise NotImplementedError

    def conductor(self, optimiser: Optimiser) -> Conduct:
        """Takes steps over the kernels of a family."""
        return partial(Conductor, optimiser)

    def shared_copy(self, numbers: array[float]) -> Doubles:
        """A copy that the kernels of a family share, as the kind of buffer that suits their code."""
        return numbers[:]

    def _record(
        self, clock: Clock, workload: Workload, row: array[float], order: Optional[Sequence[int]] = None
    ) -> tuple[Tape, list[float], list[float]]:
        """The tape of the workload's step on that row, and the numbers of its inputs and parameters.

        order: the numbers of the parameters in the order that the tape shall have.
        """
        with clock.phase("trace"):
            try:
                model = workload.model(self.nn)
                inputs = [self.Value(x) for x in row]
                outputs = workload.outputs(model, inputs)
                loss = workload.loss(model, inputs, outputs)
                parameters = model.parameters()
                if order is not None:
                    parameters = [parameters[index] for index in order]
            except DOMAIN_ERRORS as error:
                tell_domain_error(0, error)
                raise
        with clock.phase("lower"):
            tape = self.tape(loss, inputs=inputs, parameters=parameters, outputs=outputs)
            numbers = [v.data for v in inputs], [v.data for v in parameters]
        with clock.phase("trace"):
            # The graph is much larger than the tape, so free it before the next stages need memory.
            del model, inputs, outputs, loss, parameters
        return (tape, *numbers)

    def _compile(
        self,
        clock: Clock,
        tape: Tape,
        inputs: list[float],
        parameters: list[float],
        order: Order,
    ) -> Program:
        """Turn the tape into a program that starts with these numbers."""
        clock.sizes["tape_rows"] = len(tape)
        kernel = self.kernel_of(tape, parameters, clock, order)
        with clock.phase("load"):
            return Program(
                kernel,
                inputs=inputs,
                parameters=parameters,
                outputs=len(tape.outputs),
                phases=clock.phases,
                sizes=clock.sizes,
            )
