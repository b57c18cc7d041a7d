"""The driver of engines whose Value computes at once, in Python or in a compiled class: a trainer over the class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zoomgrad.engines.api import Workload
from zoomgrad.engines.interpreted.trainer import RebuildingTrainer, ScalarTrainer
from zoomgrad.engines.row import Driver, Row


@dataclass(frozen=True)
class Interpreted(Driver):
    """The driver of an engine over a Value class."""

    value: Callable[[], Any]
    """Gives the class, which may be built at the first call. Raises Unavailable if it can't be built here."""
    trainer: type[ScalarTrainer] = RebuildingTrainer
    in_python: bool = True
    """Whether the class is written in Python, so that profilers can wrap its methods."""

    def check(self, row: Row) -> None:
        self.value()

    def prepare(self, row: Row, workload: Workload) -> ScalarTrainer:
        return self.trainer(row.nn, workload)
