"""Rounds: consecutive loops that differ only in places and counts become a series, which one nest in rounds runs.

Only large graphs have series. In small ones, constant places and counts make faster code, and compile soon enough. See
`step/series.py` for an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    loops = step.loops.loops
    if len(loops) < MANY:
        return step
    every = [run for runs in step.routines.values() for run in runs]
    plain = {run.number for run in every} - {run.number for run in every if run != Run(run.number, run.loop)}
    series = {number: run for run in _series(loops, plain) for number in range(run.number, run.stop)}
    for name, runs in step.routines.items():
        step = step.with_routine(name, _merged(runs, series))
    return step


def _merged(runs: Sequence[Run], series: Mapping[int, Run]) -> Iterator[Run]:
    """The runs of a routine, with a series in place of its first loop. A routine runs all loops of a series or none."""
    for run in runs:
        merged = series.get(run.number, run)
        if merged.number == run.number:
            yield merged


def _series(loops: Sequence[Loop], plain: set[int]) -> Iterator[Run]:
    known: dict[object, int] = {}
    kinds = [known.setdefault(kind(loop) if at in plain else None, len(known)) for at, loop in enumerate(loops)]
    none = known.get(None, -1)
    at = 0
    while at < len(loops):
        rounds = {length: _rounds(kinds, at, length, none) for length in range(1, LENGTH + 1)}
        # The round whose rounds cover the most loops, and of several the shortest.
        length = max(rounds, key=lambda length: (rounds[length] >= ROUNDS, rounds[length] * length, -length))
        if rounds[length] < ROUNDS:
            at += 1
            continue
        stop = at + rounds[length] * length
        yield Run(at, loops[at], rounds=tuple(over_rounds(loops[n:stop:length]) for n in range(at, at + length)))
        at = stop


def _rounds(kinds: Sequence[int], first: int, length: int, none: int) -> int:
    """How often loops of the same kinds repeat from `first` on."""
    at = first
    while at < len(kinds) and kinds[at] != none and (at < first + length or kinds[at] == kinds[at - length]):
        at += 1
    return (at - first) // length
