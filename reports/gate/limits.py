"""The gate's limits. A suite changes them: `harness/plan/suite.py` reads its table `gate`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits on regressions, as shares: 0.10 lets a time grow by a tenth relative to the baseline's."""

    slowdown: float = 0.10
    compile_growth: float = 0.50
    elsewhere: float = 5.0
    """Factor on `slowdown` and `compile_growth` if the baseline run is another machine's: processors differ."""
    reruns: int = 3
    """How often suspects are measured again before they fail the gate, each time with twice the blocks."""
