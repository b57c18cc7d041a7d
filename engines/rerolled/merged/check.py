"""Check merged loops: each graph must find its own loops in them, in its own order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from zoomgrad.engines.rerolled.merged.numbers import constants, kind, numbers
from zoomgrad.engines.rerolled.recover.check import BrokenLoops
from zoomgrad.engines.rerolled.recover.loops import Loop

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.merged.merge import Merged


def check_merged(merged: Merged, graphs: Sequence[Sequence[Loop]], losses: Sequence[int]) -> Merged:
    """Return the merged loops. Raises BrokenLoops if those of a graph, or its loss, differ from its own.

    graphs, losses: the loops before the merge, and the places of the losses.
    """
    for graph, (loops, loss) in enumerate(zip(graphs, losses)):
        if merged.loss_of_graph(graph) != loss:
            raise BrokenLoops(f"graph {graph}: the loss is at {merged.loss_of_graph(graph)} instead of {loss}")
        for at, (ours, own) in enumerate(zip_longest(merged.of_graph(graph), loops)):
            # The room may be smaller: it is the least of all graphs.
            if ours is None or own is None or ours.room > own.room or _facts(ours, merged) != _facts(own, merged):
                raise BrokenLoops(f"graph {graph}, loop {at}: {ours} instead of {own}")
    return merged


def _facts(loop: Loop, merged: Merged) -> tuple[object, ...]:
    # 0.0 and -0.0 are equal numbers, but different constants.
    return kind(loop, merged.areas), numbers(loop), list(map(repr, constants(loop)))
