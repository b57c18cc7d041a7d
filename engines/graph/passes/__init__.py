"""Tape -> Tape, a file a pass. A pass may drop rows and replace them, and never changes a bit of what is left."""

from __future__ import annotations

import os

from engines.graph.check import check
from engines.graph.passes.fold import fold
from engines.graph.tape import Tape

CHECKED = bool(os.environ.get("ZOOMGRAD_CHECK"))
"""The checkers of all stages take a fifth of a compilation and find only our own mistakes: tests run with them."""

PASSES = (fold,)
"""In this order."""


def optimize(tape: Tape) -> Tape:
    """All passes; where CHECKED, the checker before the first and after each."""
    for improve in (_as_it_is, *PASSES):
        tape = improve(tape)
        if CHECKED:
            check(tape)
    return tape


def _as_it_is(tape: Tape) -> Tape:
    return tape
