"""Tape -> Tape, a file a pass. A pass may drop rows and replace them, and never changes a bit of what is left."""

from __future__ import annotations

from engines.graph.check import check
from engines.graph.passes.fold import fold
from engines.graph.tape import Tape

PASSES = (fold,)
"""In this order."""


def optimize(tape: Tape) -> Tape:
    """All passes, the checker before the first and after each."""
    check(tape)
    for improve in PASSES:
        improved = improve(tape)
        tape = tape if improved is tape else check(improved)
    return tape
