"""An interpreted variant as an engine: its Value class, its networks, and a trainer."""

from __future__ import annotations

from typing import Any, Optional

from zoomgrad.engines.api import Store, Workload
from zoomgrad.engines.interpreted.trainer import RebuildingTrainer, ScalarTrainer
from zoomgrad.engines.value_engine import ValueEngine


class InterpretedEngine(ValueEngine):
    """An engine over a Value class that Python runs. It needs only the interpreter."""

    def __init__(
        self, name: str, value: Any, *, trainer: type[ScalarTrainer] = RebuildingTrainer, **facts: Any
    ) -> None:
        super().__init__(name, **facts)
        self.Value = value
        self._trainer = trainer

    @property
    def rebuilds(self) -> bool:
        return issubclass(self._trainer, RebuildingTrainer)

    def prepare(self, workload: Workload, *, objects: Optional[Store] = None) -> ScalarTrainer:
        return self._trainer(self.nn, workload)
