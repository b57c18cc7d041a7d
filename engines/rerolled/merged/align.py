"""Loops of several graphs -> runs of loops that correspond.

A *run* is a stretch of consecutive loops of one kind. The *pattern* is a sequence of kinds in which every graph finds
its runs in their order, perhaps with others between them. It starts as that of the graph with the most runs. Kinds
that only another graph has are inserted. Any pattern keeps the bits, because each graph still runs its own loops in its
own order; a good pattern is short.

Example, with a letter for each kind: the graphs `abbbcbe`, `abbdcb` and `ae` have the pattern a b d c b e. In `ae`,
four runs are empty.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from zoomgrad.engines.rerolled.merged.numbers import Known
from zoomgrad.engines.rerolled.recover.loops import Loop

Runs = list[tuple[int, list[Loop]]]
"""The number of a kind, and consecutive loops of it."""


class Aligned(NamedTuple):
    """Loops of one kind."""

    kind: int
    loops: list[list[Loop]]
    """For each graph; empty if the graph has none here."""


def align(graphs: Sequence[Sequence[Loop]], known: Known) -> list[Aligned]:
    """The pattern, with the loops of each graph."""
    runs = [_runs(loops, known) for loops in graphs]
    pattern: list[int] = []
    for each in sorted(runs, key=len, reverse=True):
        pattern = _extended(pattern, [found for found, _ in each])
    aligned = [_fitted(each, pattern) for each in runs]
    # A graph may find its run earlier than where it was inserted.
    return [Aligned(wanted, loops) for wanted, *loops in zip(pattern, *aligned) if any(loops)]


def _runs(loops: Sequence[Loop], known: Known) -> Runs:
    grouped = itertools.groupby(loops, lambda loop: known(loop).run)
    return [(known(same[0]).kind, same) for same in (list(loops) for _, loops in grouped)]


def _extended(pattern: list[int], kinds: list[int]) -> list[int]:
    """The pattern with the kinds that it lacks."""
    found: list[int] = []
    for _, start, stop, first, last in SequenceMatcher(None, pattern, kinds, autojunk=False).get_opcodes():
        found += pattern[start:stop]
        if pattern[start:stop] != kinds[first:last]:
            found += kinds[first:last]
    return found


def _fitted(runs: Runs, pattern: Sequence[int]) -> Iterator[list[Loop]]:
    """The loops of each kind of the pattern."""
    waiting = iter([*runs, (-1, [])])
    found, loops = next(waiting)
    for wanted in pattern:
        if found == wanted:
            yield loops
            found, loops = next(waiting)
        else:
            yield []
