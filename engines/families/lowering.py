"""Tapes of a family -> Steps: lower the longest graph, and cut its loops for all that begin it (`merged/prefix.py`).

Any other graph is lowered on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple, Optional

from zoomgrad.engines.compiled.lower import passes_of
from zoomgrad.engines.graph.passes import CHECKED
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.merged.prefix import Prefix, marked, prefixes
from zoomgrad.engines.rerolled.merged.shorten import Shortening, Unlike
from zoomgrad.engines.rerolled.recover.check import check_loops
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step.step import Step


class Lowered(NamedTuple):
    """The passes of a graph."""

    step: Step
    seconds: float
    """How long lowering took. The longest graph's includes what all that begin it share."""


def lower_graphs(form: Form, tapes: Sequence[Tape]) -> list[Lowered]:
    """The passes of each tape."""
    start = perf_counter()
    begun = prefixes(tapes)
    shortening = _shortening(begun)
    shared = perf_counter() - start
    lowered = [_lowered(form, tape, prefix, shortening) for tape, prefix in zip(tapes, begun)]
    longest = max(range(len(tapes)), key=lambda graph: len(tapes[graph]))
    lowered[longest] = lowered[longest]._replace(seconds=lowered[longest].seconds + shared)
    return lowered


def _shortening(begun: Sequence[Optional[Prefix]]) -> Optional[Shortening]:
    """The loops of the longest graph, to be cut; None if no other one begins it."""
    graphs = [prefix for prefix in begun if prefix]
    if len(graphs) < 2:
        return None
    longest = max(graphs, key=lambda prefix: prefix.rows)
    tape, marks = marked(longest.tape, longest.end, longest.total)
    return Shortening(reroll(tape), marks, graphs)


def _lowered(form: Form, tape: Tape, prefix: Optional[Prefix], shortening: Optional[Shortening]) -> Lowered:
    start = perf_counter()
    step = None
    if prefix and shortening:
        try:
            loops = shortening.shortened(prefix)
        except Unlike:
            pass
        else:
            step = passes_of(check_loops(loops) if CHECKED else loops, form)
    # Also of an irregular tape: merged with those of other graphs, it shares their loops.
    return Lowered(step or passes_of(reroll(tape), form), perf_counter() - start)
