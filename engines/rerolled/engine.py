"""Base class of engines over recovered loops: the path from tape to step, and the check for NumPy.

A large graph with nearly as many forms as rows has no loops worth the name. The back end then gets the straight-line
code of the whole tape instead of a step, as the engines of `straight` do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Optional, Union

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.graph.passes import CHECKED
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel.engine import CompiledEngine
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.heap import HEAP
from zoomgrad.engines.rerolled.rearrange import OF_PASSES, rearrange
from zoomgrad.engines.rerolled.rearrange.freeze import passes_only
from zoomgrad.engines.rerolled.recover.chains import chain
from zoomgrad.engines.rerolled.recover.check import check_groups, check_loops, check_sums
from zoomgrad.engines.rerolled.recover.fuse import fuse
from zoomgrad.engines.rerolled.recover.gradients import pull
from zoomgrad.engines.rerolled.recover.groups import Irregular, group
from zoomgrad.engines.rerolled.recover.layout import lay_out
from zoomgrad.engines.rerolled.recover.loops import Loops
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.straight.lower import Code, lower

MANY = 150
"""Up to this many different groups, a tape is never irregular: it compiles soon enough in any form."""
ROWS = 60
"""With fewer rows for each different group, straight lines compile sooner than loops: with TCC, and with half as many
with Clang. Networks have 200 rows and more."""


def reroll(tape: Tape, most: Optional[int] = None) -> Loops:
    """Recover loops from a tape: all stages in order. If CHECKED, check the result of each.

    most: the most different groups of an irregular tape. Raises Irregular if there are more.
    """
    with HEAP.kept():
        found = pull(tape)
        if CHECKED:
            check_sums(found)
        for simplify in (chain, fuse):
            found = simplify(found)
            if CHECKED:
                check_sums(found)
        groups = group(found, most)
        if CHECKED:
            check_groups(found, groups)
        loops = lay_out(found, groups)
        del found, groups
    return check_loops(loops) if CHECKED else loops


def reroll_regular(tape: Tape) -> Loops:
    """Recover loops from a tape. Raises Irregular if straight lines compile sooner."""
    return reroll(tape, max(MANY, len(tape) // ROWS))


def lower_passes(form: Form, tape: Tape) -> Step:
    """The two passes of a tape, also of an irregular one: merged with those of other graphs, they share its loops."""
    return passes_of(form, reroll(tape))


def passes_of(form: Form, loops: Loops) -> Step:
    """The two passes of a tape with these loops."""
    return passes_only(rearrange(plain(loops), form))


class Rerolled(CompiledEngine):
    """An engine over recovered loops. As a base class, list it before the back end's class."""

    def check(self) -> None:
        """Raise Unavailable if NumPy is missing. Imports NumPy now, so that no timed phase does."""
        try:
            import numpy  # noqa: F401
        except ImportError:
            raise Unavailable("NumPy is not installed", "Install it with `pip install numpy`.") from None
        super().check()

    @property
    def fitted(self) -> Form:
        """The form, with the vectors of the target machine."""
        raise NotImplementedError

    def lower(self, tape: Tape) -> Union[Step, Code]:
        """The step over the tape's loops; straight-line code if the tape is irregular."""
        try:
            return rearrange(plain(reroll_regular(tape)), self.fitted)
        except Irregular:
            return lower(tape)

    def lower_passes(self, tape: Tape) -> Union[Step, Code]:
        try:
            return passes_of(self.form_of_passes(OF_PASSES), reroll_regular(tape))
        except Irregular:
            return lower(tape)

    def form_of_passes(self, rearrangements: Sequence[str]) -> Form:
        """The form, with only these rearrangements."""
        form = self.fitted
        kept = tuple(name for name in form.rearrangements if name in rearrangements)
        return replace(form, rearrangements=kept)

    orders_parameters = True

    def parameter_order(self, code: Union[Step, Code]) -> list[int]:
        if isinstance(code, Code):
            return []
        pairs: list[tuple[int, int]] = []
        for copy in code.loops.copies:
            pairs += zip(copy.place.places(copy.counts).tolist(), copy.parameter.places(copy.counts).tolist())
        return [index for _, index in sorted(pairs)]

    def sizes(self, code: Union[Step, Code]) -> Mapping[str, float]:
        return {"looped_share": code.loops.coverage if isinstance(code, Step) else 0.0}
