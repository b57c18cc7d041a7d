"""A row of the table of engines: its facts, how it runs, and what it does with the options of a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Unavailable, Workload
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.kernel.program import Program
from zoomgrad.engines.kernel.toolchains import Toolchain
from zoomgrad.engines.options import Options, check
from zoomgrad.engines.training import Trainer


@dataclass(frozen=True, eq=False)
class Row:
    """An engine: one way to run a `Value` program. A subclass is a kind of engine: it says how all of them run."""

    name: str
    idea: str
    """What it changes in the engine it builds on: one idea."""
    builds_on: str
    """The engine that it builds on; empty for the first."""
    typical_row_seconds: tuple[float, float] = (0.0, 0.0)
    """Rough times per tape row on CPython, of a step and of all phases of compiling, used only to estimate the length
    of a run. The second is 0 if nothing is compiled."""
    options: Options = field(default_factory=Options)
    takes: Sequence[str] = ()
    """Names of options that may change it."""
    refuses: Mapping[str, str] = field(default_factory=dict)
    """Option that users may expect -> why the engine does not take it."""
    error_bound: Optional[float] = None
    """None if strict, else the largest |x - reference| / max(1, |reference|) in a proof of at most 256 steps or 16
    batches, whichever is more."""
    rebuilds: bool = True
    """Whether it trains as an unchanged program does, by building a graph for every step. False: it keeps a graph."""
    extensible: bool = True
    """Whether a program can derive a class from Value."""
    environment: str = "worker"
    """For a peer: the lock file of its worker's packages."""

    compiles: ClassVar[bool] = False
    """Whether it has programs of its own: `compile` works."""

    @property
    def strict(self) -> bool:
        """Whether it promises the reference's bits."""
        return self.error_bound is None

    @property
    def file(self) -> str:
        """For a peer: the file that a reader should look at, relative to the project's folder."""
        return ""

    @property
    def is_peer(self) -> bool:
        """Whether it is another library, which is measured as context for the others."""
        return bool(self.file)

    @cached_property
    def Value(self) -> Any:  # noqa: N802  (a class)
        """The class that programs use; None if the engine runs whole models only. Raises Unavailable."""
        return None

    @cached_property
    def nn(self) -> Any:
        """Module, Neuron, Layer and MLP bound to `Value`."""
        return nn.bind(self.Value) if self.Value else None

    def check(self) -> None:
        """Raise Unavailable if this machine or interpreter can't run it."""
        raise NotImplementedError

    def supports(self, workload: Workload) -> Optional[str]:
        """Return why it can't run that workload; None if it can."""
        return None

    def prepare(self, workload: Workload) -> Trainer:
        """Do everything before the first step. The trainer's `phases` holds the time of each phase.

        An engine whose kernels have variants builds the one for the workload's batch.
        """
        refusal = self.supports(workload)
        if refusal:
            raise ValueError(f"{self.name} can't run {workload.name}: {refusal}\n  Call `supports` first.")
        return self._prepare(workload)

    def _prepare(self, workload: Workload) -> Trainer:
        raise NotImplementedError

    def toolchain(self) -> Optional[Toolchain]:
        """The compiler of its C on this machine; None if it compiles no C. Raises Unavailable."""
        return None

    @property
    def flags(self) -> tuple[str, ...]:
        return ()

    def compile(
        self, loss: Any, *, inputs: Sequence[Any], parameters: Sequence[Any], outputs: Sequence[Any] = ()
    ) -> Program:
        """Compile the graph below `loss`. Leaves that are neither inputs nor parameters are constants.

        outputs: Values whose data each forward pass returns. Raises the errors of `zoomgrad.engines.compile.compile`.
        """
        raise Unavailable(f"{self.name} compiles nothing", "Choose an engine such as `rerolled-clang` or `tcc`.")

    def with_options(self, texts: Sequence[str]) -> Row:
        """The engine whose name has these options. Raises WrongOption."""
        options, ideas = check(self, texts)
        return replace(
            self,
            name="+".join([self.name, *texts]),
            idea="; ".join(ideas),
            builds_on=self.name,
            options=options,
            error_bound=1e-9 if options.fma else self.error_bound,
        )

    def __repr__(self) -> str:
        return f"<engine {self.name}>"


def mlp_refusal(workload: Workload, activations: Sequence[str]) -> Optional[str]:
    """Why an engine of whole models, written for MLPs with these activations, can't run a workload; None if it can."""
    network, losses = workload.network, ("cross_entropy", "squared_error")
    if network is None:
        return "it is written for MLPs, and this model is not an MLP"
    if network.activation not in activations:
        return f"it is written for {' and '.join(activations)}, and this model has {network.activation}"
    if network.loss not in losses:
        return f"it is written for {' and '.join(losses)}, and this loss is {network.loss}"
    if workload.optimiser is not SGD:
        return f"it is written for plain descent, and this optimiser is {workload.optimiser.name}"
    if network.samples != 1:
        return f"it is written for one sample per step, and a step of this workload has {network.samples:,}"
    return None
