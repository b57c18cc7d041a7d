"""What engines over recovered loops share: the way from the tape to the step, and the need for NumPy."""

from __future__ import annotations

from collections.abc import Mapping

from engines.api import Unavailable
from engines.graph.passes import CHECKED
from engines.graph.tape import Tape
from engines.kernel.engine import CompiledEngine
from engines.rerolled.form import Form
from engines.rerolled.rearrange import rearrange
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
    """All stages, in order; where CHECKED, the checker after each."""
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
    return check_loops(loops) if CHECKED else loops


class Rerolled(CompiledEngine):
    """An engine over recovered loops. In a list of base classes it comes before the class of the back end."""

    def check(self) -> None:
        """Raise Unavailable where NumPy is missing. Imports it, so that no phase has to."""
        try:
            import numpy  # noqa: F401
        except ImportError:
            raise Unavailable("NumPy is not installed", "Install it with `pip install numpy`.") from None
        super().check()

    @property
    def fitted(self) -> Form:
        """The form, with the vectors of the machine that the code is for."""
        raise NotImplementedError

    def lower(self, tape: Tape) -> Step:
        return rearrange(plain(reroll(tape)), self.fitted)

    def sizes(self, code: Step) -> Mapping[str, float]:
        return {"looped_share": code.loops.coverage}
