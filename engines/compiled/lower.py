"""Tape -> the code of a back end: straight lines, or a step over recovered loops, rearranged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.fitted import fitted
from zoomgrad.engines.rerolled.rearrange import rearrange
from zoomgrad.engines.rerolled.rearrange.freeze import freeze, passes_only
from zoomgrad.engines.rerolled.rearrange.in_rounds import run_in_rounds
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.straight.lower import lower as straight_lines


def lower(tape: Tape, options: Options, parameters: Sequence[float] = (), *, trains: bool = True) -> Any:
    """A Step, straight-line Code, or for the published C the Tape itself.

    parameters: their starting numbers, which are constants of frozen code. trains: whether the code goes over rows;
    False for a kernel of which only the two passes are called. An irregular tape becomes straight lines.
    """
    if options.code == "tape":
        return tape
    is_frozen = options.frozen and trains
    loops = None
    if options.code == "loops":
        # The stages need NumPy, which only these engines import.
        from zoomgrad.engines.rerolled.reroll import reroll_regular

        loops = reroll_regular(tape, options.target == "machine")
    if loops is None:
        return straight_lines(tape.bound(parameters) if is_frozen else tape)
    if is_frozen:
        return freeze(plain(loops), parameters)
    form = fitted(options)
    if trains:
        return rearrange(plain(loops), form)
    passes = passes_only(plain(loops))  # which only rounds change
    return run_in_rounds(passes, form) if "in rounds" in form.rearrangements else passes


def sizes(code: Any, options: Options) -> Mapping[str, float]:
    """Figures for the record."""
    if options.code != "loops":
        return {}
    share = {"looped_share": code.loops.coverage if isinstance(code, Step) else 0.0}
    return {**share, "threads": options.threads} if options.threads else share
