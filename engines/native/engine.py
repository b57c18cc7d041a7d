"""The engine `native`: unchanged programs over a Value written in C."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Optional

from engines.api import Store, Workload
from engines.interpreted.trainer import RebuildingTrainer
from engines.native import build
from engines.value_engine import ValueEngine


class NativeEngine(ValueEngine):
    """An engine whose class is built when it is first used."""

    def check(self) -> None:
        """Raise Unavailable if Value can't be built or loaded here."""
        build.load()

    @cached_property
    def Value(self) -> Any:  # noqa: N802  (a class)
        return build.load()

    def prepare(self, workload: Workload, *, objects: Optional[Store] = None) -> RebuildingTrainer:
        return RebuildingTrainer(self.nn, workload)


ENGINES = (
    NativeEngine(
        "native",
        idea="Value as a C type: objects, operators and the backward pass without the interpreter",
        builds_on="hoisted",
        typical_row_seconds=2e-7,
    ),
)
