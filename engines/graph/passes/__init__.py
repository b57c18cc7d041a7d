"""Passes, Tape -> Tape, one per file. A pass may drop or replace rows, but never changes a bit of any remaining value.

Passes over recovered loops are not here; they are in `rerolled/rearrange`.
"""

from __future__ import annotations

import os

from zoomgrad.engines.graph.check import check
from zoomgrad.engines.graph.passes.fold import fold
from zoomgrad.engines.graph.tape import Tape

CHECKED = bool(os.environ.get("ZOOMGRAD_CHECK"))
"""Whether each stage checks its result. Off by default: checks take a fifth of a compilation, and find only our own
bugs. Tests turn them on."""

PASSES = (fold,)
"""All passes, in order."""


def optimize(tape: Tape) -> Tape:
    """Run all passes. If CHECKED, check the tape before the first pass and after each one."""
    for improve in PASSES:
        tape = improve(check(tape) if CHECKED else tape)
    return check(tape) if CHECKED else tape
