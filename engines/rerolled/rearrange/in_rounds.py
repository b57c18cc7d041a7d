"""Rounds: consecutive loops that differ only in places and counts become a series, which one nest in rounds runs.

Only large graphs have series. In small ones, constant places and counts make faster code, and compile soon enough. See
`step/series.py` for an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.recover.loops import Loop
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.series import kind, over_rounds
from zoomgrad.engines.rerolled.step.step import Step

MANY = 100
"""From this many loops on, a graph has series."""
ROUNDS = 3
"""The fewest rounds."""
LENGTH = 4
"""The most loops of a round."""


def run_in_rounds(step: Step, form: Form) -> Step:
    """Find the series of the step's loops."""
    if len(step.loops.loops) < MANY:
        return step
    every = [run for runs in step.routines.values() for run in runs]
    moved = {run.number: run.loop for run in every}  # a loop may read the copy of a matrix
    loops = [moved.get(number, loop) for number, loop in enumerate(step.loops.loops)]
    plain = {run.number for run in every} - {run.number for run in every if run != Run(run.number, run.loop)}
    series = {number: run for run in _series(loops, plain) for number in range(run.number, run.stop)}
    for name, runs in step.routines.items():
        # A routine runs all loops of a series or none, so the series takes the place of its first loop.
        kept = [run for run in runs if series.get(run.number, run).number == run.number]
        step = step.with_routine(name, [series.get(run.number, run) for run in kept])
    return step


def _series(loops: Sequence[Loop], plain: set[int]) -> Iterator[Run]:
    known: dict[object, int] = {None: -1}
    kinds = [known.setdefault(kind(loop) if at in plain else None, len(known)) for at, loop in enumerate(loops)]
    at = 0
    while at < len(loops):
        rounds = {length: _rounds(kinds, at, length) for length in range(1, LENGTH + 1)}
        # The round whose rounds cover the most loops, and of several the shortest.
        length = max(rounds, key=lambda length: (rounds[length] >= ROUNDS, rounds[length] * length, -length))
        if rounds[length] < ROUNDS:
            at += 1
            continue
        stop = at + rounds[length] * length
        yield Run(at, loops[at], rounds=tuple(over_rounds(loops[n:stop:length]) for n in range(at, at + length)))
        at = stop


def _rounds(kinds: Sequence[int], first: int, length: int) -> int:
    """How often loops of the same kinds repeat from `first` on. A loop of kind -1 can't be in a series."""
    at = first
    while at < len(kinds) and kinds[at] >= 0 and (at < first + length or kinds[at] == kinds[at - length]):
        at += 1
    return (at - first) // length
