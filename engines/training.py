"""The contract of a model under training, and what every Trainer keeps in the same way."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from operator import index
from types import MappingProxyType
from typing import Optional

from zoomgrad.engines.api import Workload
from zoomgrad.engines.arguments import whole


class Trainer:
    """A model under training. Parameters and gradients are doubles, in the order of the model's parameters."""

    phases: Mapping[str, float] = MappingProxyType({})
    """Seconds by phase (`trace`, `lower`, `generate`, `compile`, `load`), which add up to the time that `prepare` took;
    empty if nothing is prepared. `trace` records the graph, and frees it once `lower` has made a tape of it."""
    sizes: Mapping[str, float] = MappingProxyType({})
    """Further figures of what was compiled, by the names of their fields in `results.record.Figures`."""

    def __init__(self, start: array[float], workload: Workload) -> None:
        """start: the starting parameters, in the model's order."""
        self._start, self._workload = start, workload
        self._batch, self._first = whole(workload.batch, "batch", 1), 0
        self._rows: Optional[int] = None
        """Rows to train on; None: all."""
        self.losses = array("d")
        """The loss of every step since the last restart."""

    def train(self, steps: int) -> None:
        """Take that many further steps. The gradients of a partial batch persist.

        Raises NonFiniteLoss, ValueError for a rate that is not finite, and ChangedArithmetic if the processor's state
        would change the bits.
        """
        raise NotImplementedError

    def restart(
        self, *, batch: int, rows: Optional[int] = None, first: int = 0, parameters: Optional[Sequence[float]] = None
    ) -> None:
        """Return to the starting parameters and to step 0, with an update after every `batch` steps.

        rows: train on the first `rows` rows only, and wrap around after them. Raises ValueError if there are fewer.
        first: the row of step 0. parameters: start from these instead. An engine whose weights are constants can't.
        """
        self._batch = whole(batch, "batch", 1)
        if rows is not None:
            rows = whole(rows, "rows", 1, sum(len(shape.rows) for shape in self._workload.shapes()))
        self._rows = rows
        self._first = index(first)
        self.losses = array("d")
        start = self._start if parameters is None else array("d", parameters)
        if len(start) != len(self._start):
            counts = f"{len(start):,} numbers for {len(self._start):,} parameters"
            raise ValueError(f"{counts}\n  Give one number for each parameter.")
        self._begin(start)

    def _begin(self, parameters: array[float]) -> None:
        """Set the parameters, and the gradients to 0."""
        raise NotImplementedError

    def parameters(self) -> array[float]:
        raise NotImplementedError

    def gradients(self) -> array[float]:
        raise NotImplementedError

    def predict(self, row: array[float]) -> array[float]:
        """The model's outputs for one row of inputs, laid out as in training."""
        raise NotImplementedError
