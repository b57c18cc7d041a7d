"""What engines raise, and what they see of a workload.

An engine sees a workload through the `Workload` protocol, so `engines` imports none of our other packages. An engine is
a Row (`row`), and what it prepares is a Trainer (`training`).
"""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Iterable, Sequence
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


# TypeError, because (-8.0) ** 0.5 is a complex number, which the next comparison or libm function refuses.
DOMAIN_ERRORS = (ArithmeticError, ValueError, TypeError)

_VALUES = (
    "zoomgrad.engines.interpreted",
    "zoomgrad.engines.graph",
    "zoomgrad.engines.native",
    "zoomgrad.engines.value_base",
    "zoomgrad_translated",
)
"""How the names of modules begin in which Values compute. `engines.translated` builds the last ones."""


def tell_domain_error(step: int, error: Exception) -> None:
    """Raise NonFiniteLoss for a Value's domain error, such as log(0). Return if a model or a loss made the mistake."""
    at = error.__traceback__
    while at and at.tb_next:
        at = at.tb_next
    if at and str(at.tb_frame.f_globals["__name__"]).startswith(_VALUES):
        raise NonFiniteLoss(step, error) from error


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

    def activates(self, layer: int) -> bool:
        """Whether that layer, counted from 0, has the activation."""
        return layer < len(self.shape) - 2 or not self.last_linear


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
