"""The contract of an engine: what it provides and what it raises.

Every engine and every worker uses this module. An engine sees a workload through the `Workload` protocol, so `engines`
imports none of our other packages.
"""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Protocol, Union

from zoomgrad.engines.columns import Column
from zoomgrad.engines.graph.optimisers import Optimiser

Number = Union[int, float]


class Unavailable(Exception):
    """An engine can't run here. Carries the reason, and the command or setting that fixes it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.reason = reason
        self.remedy = remedy


class UnknownName(LookupError):
    """No engine, workload, interpreter or preset has this name. Carries the nearest names that exist.

    left_out: things that may have had that name, each with the reason why it was left out.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, left_out: Sequence[str] = ()) -> None:
        known = list(known)
        nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(nearest)}?" if nearest else f"Known: {', '.join(known) or 'none yet'}."
        also = "".join(f"\n  Left out: {problem}" for problem in left_out)
        super().__init__(f"there is no {kind} {name!r}\n  {hint}{also}")
        self.nearest = nearest

    def __str__(self) -> str:  # the text itself; a KeyError would show its repr
        return str(self.args[0])


class WrongOption(UnknownName):
    """An engine does not take this option, or no engine does. The problem and the remedy fit on one line."""

    def __init__(self, engine: str, option: str, why: str, remedy: str) -> None:
        LookupError.__init__(self, f"{engine} takes no option +{option}: {why}; {remedy}")
        self.nearest = []


class NonFiniteLoss(ArithmeticError):
    """A loss is not finite. Carries the step, counted from 0, and the loss if it was computed.

    The update of that step was not applied.
    """

    def __init__(self, step: int, value: object) -> None:
        super().__init__(
            f"the loss of step {step} is not a finite number: {value}\n"
            "  Lower the rate, or start from other parameters."
        )
        self.step = step
        self.value = value


class CyclicGraph(RuntimeError):
    """A Value is its own ancestor. Only a manual edit of `_prev` can cause this."""

    def __init__(self, value: object) -> None:
        super().__init__(f"cycle in the graph: {value!r} is among its own operands\n  Undo the edit of `_prev`.")


class Network(NamedTuple):
    """A plain MLP with a known loss, for engines that run whole models only."""

    shape: tuple[int, ...]
    """Sizes of the layers, inputs first."""
    activation: str
    """The activation of every layer, except the last one if `last_linear`; a key of `nn.ACTIVATIONS`."""
    last_linear: bool
    loss: str
    """`cross_entropy`, `squared_error` or `hinge_l2`, as in `engines.nn`; the last one adds 1e-4 L2."""
    samples: int
    """Samples in the graph of one step. A row holds them one after the other: features, then targets, of each."""


class Shape(NamedTuple):
    """Training rows of one length, which share a graph."""

    columns: tuple[Column, ...]
    """Their inputs, as stored in memory."""
    rows: Sequence[int]
    """The number of each among all rows."""


class Workload(Protocol):
    """The part of a workload that engines use. A row is all inputs of one step, features before targets."""

    @property
    def name(self) -> str: ...
    @property
    def batch(self) -> int:
        """Steps between two updates."""

    @property
    def network(self) -> Optional[Network]:
        """The model and its loss; None if the model is not a plain MLP."""

    @property
    def learns(self) -> bool:
        """Whether a step has a backward pass. If not, it only records its loss, and no parameter changes."""

    def rate(self, update: int) -> float:
        """Learning rate of that update, a finite number. Updates count from 0."""

    def row(self, step: int) -> array[float]:
        """The input leaves of that step, as doubles. Rows come in dataset order and wrap around."""

    def columns(self) -> tuple[Column, ...]:
        """All training rows, as stored in memory: the same numbers as `row`."""

    @property
    def optimiser(self) -> Optimiser: ...
    @property
    def varies(self) -> bool:
        """Whether rows have several lengths, each with a graph of its own over the same parameters."""

    def shapes(self) -> Sequence[Shape]:
        """All training rows, those of each length apart. `columns` exists only if there is one length."""

    def model(self, nn: Any) -> Any:
        """A new model with its starting parameters. nn: the networks bound to an engine's Value."""

    def outputs(self, model: Any, inputs: Sequence[Any]) -> list[Any]:
        """The model's outputs for one row."""

    def loss(self, model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The loss of those outputs, as one Value."""


class Engine(Protocol):
    """One way to run a `Value` program."""

    @property
    def name(self) -> str: ...
    @property
    def idea(self) -> str:
        """What it changes in the engine it builds on: one idea."""

    @property
    def builds_on(self) -> str:
        """The engine that it builds on; empty for the first."""

    @property
    def strict(self) -> bool:
        """Whether it promises the reference's bits."""

    @property
    def error_bound(self) -> Optional[float]:
        """None if strict, else the largest |x - reference| / max(1, |reference|) in a proof of at most 256 steps or 16
        batches, whichever is more."""

    @property
    def native(self) -> bool:
        """Whether its C is compiled for this exact processor (`-march=native`), which may have wider vectors."""

    @property
    def typical_row_seconds(self) -> float:
        """Rough time of a step per tape row on CPython, used only to estimate the length of a run."""

    @property
    def typical_compile_row_seconds(self) -> float:
        """Rough time of all phases per tape row, also for the estimate; 0 if nothing is compiled."""

    @property
    def Value(self) -> Any:
        """The class that programs use; None if the engine runs whole models only."""

    @property
    def nn(self) -> Any:
        """Module, Neuron, Layer and MLP bound to `Value`."""

    def check(self) -> None:
        """Raise Unavailable if this machine or interpreter can't run it."""

    def supports(self, workload: Workload) -> Optional[str]:
        """Return why it can't run that workload; None if it can."""

    def prepare(self, workload: Workload) -> Trainer:
        """Do everything before the first step. The trainer's `phases` holds the time of each phase.

        An engine whose kernels have variants builds the one for the workload's batch.
        """


class Trainer(Protocol):
    """A model under training. Parameters and gradients are doubles, in the order of the model's parameters."""

    phases: Mapping[str, float]
    """Seconds by phase (`trace`, `lower`, `generate`, `compile`, `load`), which add up to the time that `prepare` took;
    empty if nothing is prepared. `trace` records the graph, and frees it once `lower` has made a tape of it."""
    sizes: Mapping[str, float]
    """Further figures of what was compiled, by the names of their fields in `results.record.Figures`."""
    losses: array[float]
    """The loss of every step since the last restart."""

    def train(self, steps: int) -> None:
        """Take that many further steps. The gradients of a partial batch persist.

        Raises NonFiniteLoss, ValueError for a rate that is not finite, and ChangedArithmetic if the processor's state
        would change the bits.
        """

    def restart(
        self,
        *,
        batch: int,
        rows: Optional[int] = None,
        first: int = 0,
        parameters: Optional[Sequence[float]] = None,
    ) -> None:
        """Return to the starting parameters and to step 0, with an update after every `batch` steps.

        rows: train on the first `rows` rows only, and wrap around after them. Raises ValueError if there are fewer.
        first: the row of step 0.
        parameters: start from these parameters instead. An engine whose weights are constants can't.
        """

    def parameters(self) -> array[float]: ...
    def gradients(self) -> array[float]: ...
    def predict(self, row: array[float]) -> array[float]:
        """The model's outputs for one row of inputs, laid out as in training."""
