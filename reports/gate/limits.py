"""The gate's limits. The table `gate` of a suite changes them: `harness/cli/suites.py`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from zoomgrad.results.record import Model

Growth = Annotated[float, Field(ge=1e-6, le=100.0)]
"""A share of 0 would allow nothing."""


class Limits(Model):
    """Limits on regressions, as shares: 0.10 lets a time grow by a tenth relative to the baseline's."""

    slowdown: Growth = 0.10
    compile_growth: Growth = 0.50
    elsewhere: Annotated[float, Field(ge=1.0)] = 5.0
    """Factor on `slowdown` and `compile_growth` if the baseline run is another machine's: processors differ."""
    reruns: Annotated[int, Field(ge=0, le=10, strict=True)] = 3
    """How often suspects are measured again before they fail the gate, each time with twice the blocks."""
