"""Base class of every engine with a Value class: its facts, the class, and the networks bound to it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Workload


class ValueEngine:
    """An engine that runs everywhere, and runs any workload.

    Subclasses add `Value` and `prepare`, and may be stricter.
    """

    Value: Any
    """The class that programs use."""
    extensible = True
    """Whether a program can derive a class from Value."""

    def __init__(
        self,
        name: str,
        *,
        idea: str,
        builds_on: str = "",
        strict: bool = True,
        error_bound: Optional[float] = None,
        native: bool = False,
        typical_row_seconds: float,
        typical_compile_row_seconds: float = 0.0,
    ) -> None:
        self.name = name
        self.idea = idea
        self.builds_on = builds_on
        self.strict = strict
        self.error_bound = error_bound
        self.native = native
        self.typical_row_seconds = typical_row_seconds
        self.typical_compile_row_seconds = typical_compile_row_seconds

    @cached_property
    def nn(self) -> nn.Networks:
        """Module, Neuron, Layer and MLP bound to `Value`."""
        return nn.bind(self.Value)

    @property
    def rebuilds(self) -> bool:
        """Whether it trains as an unchanged program does, by building a graph for every step."""
        return not hasattr(self, "compile")

    def check(self) -> None:
        """Return at once, because nothing is needed."""

    def supports(self, workload: Workload) -> Optional[str]:
        return None

    def __repr__(self) -> str:
        return f"<engine {self.name}>"
