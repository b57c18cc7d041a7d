"""Engines that train with a Value class, in Python or compiled, which computes at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from zoomgrad.engines.api import Workload
from zoomgrad.engines.interpreted.trainer import ScalarTrainer
from zoomgrad.engines.row import Row


@dataclass(frozen=True, eq=False, repr=False)
class Interpreted(Row):
    """An engine over a Value class."""

    build: Callable[[], Any] = lambda: None
    """Gives the class, which may be built at the first call. Raises Unavailable if it can't be built here."""
    trainer: type[ScalarTrainer] = ScalarTrainer
    in_python: bool = True
    """Whether the class is written in Python, so that profilers can wrap its methods."""

    @cached_property
    def Value(self) -> Any:  # noqa: N802  (a class)
        return self.build()

    def check(self) -> None:
        self.build()

    def _prepare(self, workload: Workload) -> ScalarTrainer:
        return self.trainer(self.nn, workload)
