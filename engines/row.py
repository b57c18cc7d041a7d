"""A row of the table of engines: its facts, and what it does with the options of a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Optional, Protocol

from zoomgrad.engines import nn
from zoomgrad.engines.api import Trainer, Unavailable, Workload
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.kernel.program import Program
from zoomgrad.engines.kernel.toolchains import FUSED_ERROR_BOUND, Toolchain
from zoomgrad.engines.options import Options, check


class Driver(Protocol):
    """How engines of one kind run. The methods other than `value` are those of `zoomgrad.engines.api.Engine`."""

    def value(self) -> Any:
        """The class that programs use; None if engines of this kind run whole models only. Raises Unavailable."""

    def check(self, row: Row) -> None: ...
    def supports(self, row: Row, workload: Workload) -> Optional[str]: ...
    def prepare(self, row: Row, workload: Workload) -> Trainer: ...
    def toolchain(self, row: Row) -> Optional[Toolchain]:
        """The compiler of its C on this machine; None if it compiles no C. Raises Unavailable."""

    def flags(self, row: Row) -> tuple[str, ...]:
        """The flags of that compiler."""


@dataclass(frozen=True, eq=False)
class Row:
    """An engine. See `zoomgrad.engines.api.Engine`."""

    name: str
    idea: str
    builds_on: str
    driver: Driver
    options: Options = field(default_factory=Options)
    takes: Sequence[str] = ()
    """Names of options that may change it."""
    refuses: Mapping[str, str] = field(default_factory=dict)
    """Option that users may expect -> why the engine does not take it."""
    error_bound: Optional[float] = None
    typical_row_seconds: float = 0.0
    typical_compile_row_seconds: float = 0.0
    compiler: Optional[Callable[[Row, Graph], Program]] = None
    """What `compile` calls; None if it compiles nothing."""
    rebuilds: bool = True
    """Whether it trains as an unchanged program does, by building a graph for every step. False: it keeps a graph."""
    extensible: bool = True
    """Whether a program can derive a class from Value."""
    file: str = ""
    """For a peer: the file that a reader should look at, relative to the project's folder."""
    environment: str = "worker"
    """For a peer: the lock file of its worker's packages."""

    @property
    def compiles(self) -> bool:
        """Whether it has programs of its own: `compile` works."""
        return self.compiler is not None

    @property
    def strict(self) -> bool:
        return self.error_bound is None

    @property
    def native(self) -> bool:
        return self.options.native

    @property
    def is_peer(self) -> bool:
        return bool(self.file)

    @cached_property
    def Value(self) -> Any:  # noqa: N802  (a class)
        return self.driver.value()

    @cached_property
    def nn(self) -> Any:
        """Module, Neuron, Layer and MLP bound to `Value`."""
        return nn.bind(self.Value) if self.Value else None

    def check(self) -> None:
        self.driver.check(self)

    def supports(self, workload: Workload) -> Optional[str]:
        return self.driver.supports(self, workload)

    def prepare(self, workload: Workload) -> Trainer:
        refusal = self.supports(workload)
        if refusal:
            raise ValueError(f"{self.name} can't run {workload.name}: {refusal}\n  Call `supports` first.")
        return self.driver.prepare(self, workload)

    def toolchain(self) -> Optional[Toolchain]:
        """The compiler of its C on this machine; None if it compiles no C. Raises Unavailable."""
        return self.driver.toolchain(self)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of that compiler."""
        return self.driver.flags(self)

    def compile(
        self, loss: Any, *, inputs: Sequence[Any], parameters: Sequence[Any], outputs: Sequence[Any] = ()
    ) -> Program:
        """Compile the graph below `loss`. Leaves that are neither inputs nor parameters are constants.

        outputs: Values whose data each forward pass returns. Raises the errors of `zoomgrad.engines.compile.compile`.
        """
        if not self.compiler:
            raise Unavailable(f"{self.name} compiles nothing", "Choose an engine such as `rerolled-clang` or `tcc`.")
        return self.compiler(self, Graph(loss, inputs, parameters, outputs))

    def with_options(self, texts: Sequence[str]) -> Row:
        """The engine whose name has these options. Raises WrongOption."""
        options, ideas = check(self, texts)
        return replace(
            self,
            name="+".join([self.name, *texts]),
            idea="; ".join(ideas),
            builds_on=self.name,
            options=options,
            error_bound=FUSED_ERROR_BOUND if options.fma else self.error_bound,
        )

    def __repr__(self) -> str:
        return f"<engine {self.name}>"


def mlp_refusal(workload: Workload, activations: Sequence[str]) -> Optional[str]:
    """Why an engine of whole models, written for MLPs with these activations, can't run a workload; None if it can."""
    network = workload.network
    if network is None:
        return "it is written for MLPs, and this model is not an MLP"
    if network.activation not in activations:
        return f"it is written for {' and '.join(activations)}, and this model has {network.activation}"
    if network.loss not in MLP_LOSSES:
        return f"it is written for {' and '.join(MLP_LOSSES)}, and this loss is {network.loss}"
    if workload.optimiser is not SGD:
        return f"it is written for plain descent, and this optimiser is {workload.optimiser.name}"
    if network.samples != 1:
        return f"it is written for one sample per step, and a step of this workload has {network.samples:,}"
    return None


MLP_LOSSES = ("cross_entropy", "squared_error")
