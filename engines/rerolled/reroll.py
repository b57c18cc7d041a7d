"""Tape -> Loops: recover loops from a tape, one stage after another.

A large graph with nearly as many forms as rows has no loops worth the name, and is called irregular. A graph whose loss
is a leaf has no loop that computes the loss. Engines compile both with the code of `straight`.
"""

from __future__ import annotations

from typing import Optional

from zoomgrad.engines.graph.check import CHECKED
from zoomgrad.engines.graph.tape import CONSTANT, Tape
from zoomgrad.engines.rerolled.heap import keep_freed_memory
from zoomgrad.engines.rerolled.recover.chains import chain
from zoomgrad.engines.rerolled.recover.check import check_loops
from zoomgrad.engines.rerolled.recover.fuse import fuse
from zoomgrad.engines.rerolled.recover.gradients import pull
from zoomgrad.engines.rerolled.recover.groups import group
from zoomgrad.engines.rerolled.recover.layout import lay_out
from zoomgrad.engines.rerolled.recover.loops import Loops
from zoomgrad.engines.rerolled.recover.waves import Irregular

MANY = 150
"""Up to this many different groups, a tape is never irregular: it compiles soon enough in any form."""
ROWS = 60
"""With fewer rows for each different group, straight lines compile sooner than loops: with TCC, and with half as many
with Clang. Networks have 200 rows and more."""

MANY_FOR_MACHINE = 5_000
"""Different groups of an irregular tape beyond which machine code for its loops would take a second to write."""


def reroll(tape: Tape, most: Optional[int] = None, like: Optional[Loops] = None) -> Loops:
    """Recover loops from a tape: all stages in order. If CHECKED, check the loops.

    most: the most different groups of an irregular tape. Raises Irregular if there are more. like: as for `lay_out`.
    """
    keep_freed_memory()
    sums = fuse(chain(pull(tape)))
    loops = lay_out(sums, group(sums, most), like)
    return check_loops(loops) if CHECKED else loops


def reroll_regular(tape: Tape, for_machine: bool = False, like: Optional[Loops] = None) -> Optional[Loops]:
    """Recover loops from a tape; None if it is irregular, so that straight lines compile sooner, or its loss a leaf.

    for_machine: whether loops become machine code. like: as for `lay_out`.
    """
    if tape.ops[tape.loss] <= CONSTANT:
        return None
    try:
        return reroll(tape, MANY_FOR_MACHINE if for_machine else max(MANY, len(tape) // ROWS), like)
    except Irregular:
        return None
