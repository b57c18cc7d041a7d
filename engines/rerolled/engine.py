"""Base class of engines over recovered loops: the path from tape to step, and the check for NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engines.api import Unavailable
from engines.graph.passes import CHECKED
from engines.graph.tape import Tape
from engines.kernel.engine import CompiledEngine
from engines.rerolled.form import Form
from engines.rerolled.heap import HEAP
from engines.rerolled.rearrange import OF_PASSES, rearrange
from engines.rerolled.rearrange.freeze import passes_only
from engines.rerolled.recover.chains import chain
from engines.rerolled.recover.check import check_groups, check_loops, check_sums
from engines.rerolled.recover.fuse import fuse
from engines.rerolled.recover.gradients import pull
from engines.rerolled.recover.groups import group
from engines.rerolled.recover.layout import lay_out
from engines.rerolled.recover.loops import Loops
from engines.rerolled.step.plain import plain
from engines.rerolled.step.step import Step


def reroll(tape: Tape) -> Loops:
    """Recover loops from a tape: all stages in order. If CHECKED, check the result of each."""
    with HEAP.kept():
        found = pull(tape)
        if CHECKED:
            check_sums(found)
        for simplify in (chain, fuse):
            found = simplify(found)
            if CHECKED:
                check_sums(found)
        groups = group(found)
        if CHECKED:
            check_groups(found, groups)
        loops = lay_out(found, groups)
        del found, groups
    return check_loops(loops) if CHECKED else loops


def lower_passes(form: Form, tape: Tape) -> Step:
    """The two passes of a tape."""
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

    def lower(self, tape: Tape) -> Step:
        return rearrange(plain(reroll(tape)), self.fitted)

    def lower_passes(self, tape: Tape, rearrangements: Sequence[str] = OF_PASSES) -> Step:
        """The two passes. rearrangements: those to make, if the form has them."""
        return lower_passes(self.form_of_passes(rearrangements), tape)

    def form_of_passes(self, rearrangements: Sequence[str]) -> Form:
        """The form, with only these rearrangements."""
        form = self.fitted
        kept = tuple(name for name in form.rearrangements if name in rearrangements)
        return replace(form, rearrangements=kept)

    orders_parameters = True

    def parameter_order(self, code: Step) -> list[int]:
        pairs: list[tuple[int, int]] = []
        for copy in code.loops.copies:
            pairs += zip(copy.place.places(copy.counts).tolist(), copy.parameter.places(copy.counts).tolist())
        return [index for _, index in sorted(pairs)]

    def sizes(self, code: Step) -> Mapping[str, float]:
        return {"looped_share": code.loops.coverage}
