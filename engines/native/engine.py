"""The engine `native`: unchanged programs over a Value written in C."""

from __future__ import annotations

from zoomgrad.engines.interpreted.built import BuiltEngine
from zoomgrad.engines.native import build

ENGINES = (
    BuiltEngine(
        "native",
        build.load,
        extensible=False,
        idea="Value as a C type: objects, operators and the backward pass without the interpreter",
        builds_on="hoisted",
        typical_row_seconds=2e-7,
    ),
)
