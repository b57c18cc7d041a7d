"""An interpreted variant as an engine: its Value class, its networks, and a trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

from engines import nn
from engines.api import Workload
from engines.interpreted.trainer import RebuildingTrainer, ScalarTrainer


class InterpretedEngine:
    """A Value class that Python runs; it needs nothing but the interpreter."""

    typical_compile_row_seconds = 0.0

    def __init__(
        self,
        name: str,
        value: Any,
        *,
        idea: str,
        builds_on: str = "",
        strict: bool = True,
        error_bound: Optional[float] = None,
        typical_row_seconds: float,
        trainer: type[ScalarTrainer] = RebuildingTrainer,
    ) -> None:
        self.name = name
        self.Value = value
        self.nn = nn.bind(value)
        self.idea = idea
        self.builds_on = builds_on
        self.strict = strict
        self.error_bound = error_bound
        self.typical_row_seconds = typical_row_seconds
        self._trainer = trainer

    def check(self) -> None:
        """Runs wherever Python does."""

    def supports(self, workload: Workload) -> Optional[str]:
        return None

    def prepare(self, workload: Workload, *, objects: Optional[Path] = None) -> ScalarTrainer:
        return self._trainer(self.nn, workload)

    def __repr__(self) -> str:
        return f"<engine {self.name}>"
