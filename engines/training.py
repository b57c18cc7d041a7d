"""Where a training stands: what every Trainer keeps in the same way."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import index
from typing import Optional

from zoomgrad.engines.arguments import one_each, whole


class Training:
    """The start of a training, its losses, and the numbers that its steps depend on. Subclasses take the steps."""

    def __init__(self, start: array[float], batch: int) -> None:
        """start: the starting parameters, in the model's order."""
        self._start = start
        self._batch, self._first = whole(batch, "batch", 1), 0
        self._rows: Optional[int] = None
        """Rows to train on; None: all."""
        self.losses = array("d")

    def restart(
        self,
        *,
        batch: int,
        rows: Optional[int] = None,
        first: int = 0,
        parameters: Optional[Sequence[float]] = None,
    ) -> None:
        """See `Trainer.restart`."""
        self._batch = whole(batch, "batch", 1)
        self._rows = None if rows is None else whole(rows, "rows", 1, self._row_count())
        self._first = index(first)
        self.losses = array("d")
        self._begin(self._start if parameters is None else array("d", one_each(parameters, len(self._start))))

    def _row_count(self) -> int:
        """The number of the workload's rows."""
        raise NotImplementedError

    def _begin(self, parameters: array[float]) -> None:
        """Set the parameters, and the gradients to 0."""
        raise NotImplementedError
