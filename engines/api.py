"""What an engine promises, and what it may raise.

The only module that every engine and every worker knows. A workload reaches an engine through the `Workload` protocol,
so that `engines` needs to import nothing of ours.
"""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional, Protocol, Union

from engines.columns import Column

Number = Union[int, float]


class Unavailable(Exception):
    """An engine can't run here: why, and the command or setting that would let it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.reason = reason
        self.remedy = remedy


class UnknownName(LookupError):
    """A name that no engine, workload, interpreter or preset has; carries the nearest that exist.

    left_out: what may have had that name, and why it is left out.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, left_out: Sequence[str] = ()) -> None:
        known = list(known)
        nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(nearest)}?" if nearest else f"Known: {', '.join(known)}."
        also = "".join(f"\n  Left out: {problem}" for problem in left_out)
        super().__init__(f"there is no {kind} {name!r}\n  {hint}{also}")
        self.nearest = nearest

    def __str__(self) -> str:  # LookupError's own would do, KeyError's would show the repr
        return str(self.args[0])


class WrongSuffix(UnknownName):
    """A suffix that an engine can't take, or that there is not: the problem and the remedy, in one line."""

    def __init__(self, engine: str, suffix: str, why: str, remedy: str) -> None:
        LookupError.__init__(self, f"{engine} takes no suffix -{suffix}: {why}; {remedy}")
        self.nearest = []


class NonFiniteLoss(ArithmeticError):
    """Training left the real numbers: the step (counted from 0) and the loss there, if there was one.

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
    """A Value is its own ancestor, which only an edit of `_prev` by hand can bring about."""

    def __init__(self, value: object) -> None:
        super().__init__(f"cycle in the graph: {value!r} is among its own operands\n  Undo the edit of `_prev`.")


class Network(NamedTuple):
    """A plain MLP under a known loss: all that an engine needs that knows only whole models."""

    shape: tuple[int, ...]
    """Sizes of the layers, inputs first."""
    activation: str
    """Of every layer, but for the last one where `last_linear`; a key of `nn.ACTIVATIONS`."""
    last_linear: bool
    loss: str
    """`cross_entropy`, `squared_error` or `hinge_l2`, as `engines.nn` has them; the last with 1e-4 L2."""
    samples: int
    """Samples of one step, in one graph: a row has them one after the other, each its features, then its targets."""


class Workload(Protocol):
    """What an engine may ask of a workload. Shapes: a row is all inputs of one step, features before targets."""

    @property
    def name(self) -> str: ...
    @property
    def batch(self) -> int:
        """Steps between two updates."""

    @property
    def network(self) -> Optional[Network]:
        """What the model is and how wrong it is measured to be; None where the model is no plain MLP."""

    def rate(self, update: int) -> float:
        """Learning rate of that update, counted from 0: a finite number."""

    def row(self, step: int) -> array[float]:
        """The doubles of that step's input leaves; rows come in dataset order and wrap around."""

    def columns(self) -> tuple[Column, ...]:
        """All training rows as they lie in memory; the same numbers as `row` gives."""

    def model(self, nn: Any) -> Any:
        """A new model with its starting parameters, from `nn`, the networks bound to an engine's Value."""

    def outputs(self, model: Any, inputs: Sequence[Any]) -> list[Any]:
        """What the model says of the row."""

    def loss(self, model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """One Value: how wrong the outputs are."""


class Engine(Protocol):
    """One way to run a `Value` program."""

    @property
    def name(self) -> str: ...
    @property
    def idea(self) -> str:
        """The one idea that sets it apart from the engine it builds on."""

    @property
    def builds_on(self) -> str:
        """The engine before it on the ladder; empty for the first."""

    @property
    def strict(self) -> bool:
        """Whether it promises the reference's bits."""

    @property
    def error_bound(self) -> Optional[float]:
        """Where not strict: the largest |x - reference| / max(1, |reference|) in a proof, of at most 256 steps."""

    @property
    def native(self) -> bool:
        """Whether its C is compiled for this very processor (`-march=native`), whose vectors may be wider."""

    @property
    def typical_row_seconds(self) -> float:
        """About how long a step takes per tape row on CPython; only the plan's estimate uses it."""

    @property
    def typical_compile_row_seconds(self) -> float:
        """About how long all its phases take per tape row; 0 where nothing is compiled. For the estimate, too."""

    @property
    def Value(self) -> Any:
        """The class that programs are written in; None where the engine knows only whole models."""

    @property
    def nn(self) -> Any:
        """Module, Neuron, Layer and MLP bound to `Value`."""

    def check(self) -> None:
        """Raise Unavailable where this machine or interpreter can't run it."""

    def supports(self, workload: Workload) -> Optional[str]:
        """Why it can't run that workload; None where it can."""

    def prepare(self, workload: Workload, *, objects: Optional[Path] = None) -> Trainer:
        """Everything before the first step, timed by phase in the trainer's `phases`.

        objects: a private folder where an object that was slow to compile is kept, and taken from the next time.
        """


class Trainer(Protocol):
    """A model under training. Numbers come back as doubles, in the order of the model's parameters."""

    phases: Mapping[str, float]
    """Seconds by phase (`trace`, `lower`, `generate`, `compile`, `load`); empty where nothing is prepared."""
    sizes: Mapping[str, float]
    """Figures of a record that are there where something was compiled: `tape_rows`, `source_bytes`, `object_bytes`,
    `looped_share`, `translation_units`, `parallel_compilers` and `vector_doubles`."""
    losses: array[float]
    """The loss of every step since the last restart."""

    def train(self, steps: int) -> None:
        """Take so many further steps. A partial batch's gradients persist.

        Raises NonFiniteLoss, ValueError for a rate that is not finite, and ChangedArithmetic where the processor's
        state would change the bits.
        """

    def restart(self, *, batch: int, rows: Optional[int] = None) -> None:
        """Back to the starting parameters and to step 0, with an update after every `batch` steps.

        rows: train on the first so many rows only, and wrap around after them.
        """

    def parameters(self) -> array[float]: ...
    def gradients(self) -> array[float]: ...
    def predict(self, row: array[float]) -> array[float]:
        """The model's outputs for one row of inputs, laid out as in training."""
