"""The class that compiled engines record graphs with: the C type where it can be built, else the one in Python."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.native import build

SWITCH = "ZOOMGRAD_RECORDER"
"""Environment variable: `python` selects the class in Python, for tests and for comparison."""


@cache
def recorder() -> Any:
    """The Value class of every compiled engine in this process."""
    if os.environ.get(SWITCH) == "python":
        return Value
    try:
        return build.load()
    except Unavailable:
        return Value
