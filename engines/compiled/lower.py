"""Tape -> the code of a back end: straight lines, or a step over recovered loops, rearranged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.fitted import fitted
from zoomgrad.engines.rerolled.rearrange import rearrange
from zoomgrad.engines.rerolled.rearrange.freeze import freeze, passes_only
from zoomgrad.engines.rerolled.rearrange.in_rounds import run_in_rounds
from zoomgrad.engines.rerolled.recover.loops import Loops
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.straight.lower import lower as straight_lines


def lower(tape: Tape, options: Options, parameters: Sequence[float] = ()) -> Any:
    """A Step, straight-line Code, or for the published C the Tape itself.

    parameters: their starting numbers, which are constants of frozen code. An irregular tape becomes straight lines.
    """
    if options.code == "tape":
        return tape
    loops = _loops(tape, options)
    if loops is None:
        return straight_lines(tape.bound(parameters) if options.frozen else tape)
    return freeze(plain(loops), parameters) if options.frozen else rearrange(plain(loops), fitted(options))


def lower_passes(tape: Tape, options: Options, *, in_place: bool, like: Optional[Loops] = None) -> Any:
    """Lower a tape whose kernel runs the forward and the backward pass only.

    in_place: whether parameters and gradients stay in the workspace. like: loops whose places the parameters take.
    Raises Unlike if they can't.
    """
    loops = _loops(tape, options, like)
    if loops is None:
        return tape if options.code == "tape" else straight_lines(tape)
    passes, form = passes_only(plain(loops), in_place=in_place), fitted(options)
    # Of all rearrangements, only rounds apply to passes.
    return run_in_rounds(passes, form) if "in rounds" in form.rearrangements else passes


def _loops(tape: Tape, options: Options, like: Optional[Loops] = None) -> Optional[Loops]:
    if options.code != "loops":
        return None
    # The stages need NumPy, which only these engines import.
    from zoomgrad.engines.rerolled.reroll import reroll_regular

    return reroll_regular(tape, options.target == "machine", like)


def sizes(code: Any, options: Options) -> Mapping[str, float]:
    """Figures for the record."""
    if options.code != "loops":
        return {}
    share = {"looped_share": code.loops.coverage if isinstance(code, Step) else 0.0}
    return {**share, "threads": options.threads} if options.threads else share
