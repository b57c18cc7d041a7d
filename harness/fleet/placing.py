"""Which unit an idle host takes next. Pure: no clock, no cluster.

Units are taken in the order of their numbers, so that the first intervals come early. Two things differ from a queue:
a unit that was interrupted continues on its host, and near the end a slow host takes nothing that the others would
finish sooner without it.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from harness.fleet.unit import Unit


@dataclass(frozen=True)
class Waiting:
    """A unit that no host is measuring."""

    unit: Unit
    seconds: float
    """Estimated time on a host of pace 1."""
    host: str = ""
    """The host that began it, and has some of its records; empty if none has."""


@dataclass(frozen=True)
class Place:
    """A host that is connected."""

    name: str
    interpreters: Collection[str]
    pace: float = 1.0
    """Its time for a unit, relative to the estimate."""
    busy_seconds: float = 0.0
    """Estimated time until it is idle."""


def choose(
    idle: Place, fresh: Collection[Waiting], begun: Collection[Waiting], places: Mapping[str, Place]
) -> Waiting | None:
    """The unit for an idle host; None if there is none, or if it had better leave the rest to others.

    fresh: units that no host has begun, by number. begun: the others. places: all connected hosts, by name.
    """
    own = next((one for one in begun if one.host == idle.name), None)
    if own:
        return own
    chosen = next((one for one in fresh if one.unit.interpreter in idle.interpreters), None)
    # A unit whose host is gone comes last: the host may come back, and has part of it.
    left = (one for one in begun if one.unit.interpreter in idle.interpreters and one.host not in places)
    chosen = chosen or next(left, None)
    waiting = len(fresh) + len(begun)
    if chosen and waiting <= len(places) and _sooner_without(idle, chosen, [*fresh, *begun], places):
        return None
    return chosen


def _sooner_without(idle: Place, chosen: Waiting, waiting: Sequence[Waiting], places: Mapping[str, Place]) -> bool:
    """Whether the other hosts would finish everything that waits before this one finished the chosen unit."""
    end = chosen.seconds * idle.pace
    others = [(one.busy_seconds, one.name) for one in places.values() if one.name != idle.name]
    heapq.heapify(others)
    for one in waiting:
        # The first to be idle takes it, as a host would; one that can't run it is passed over.
        passed = []
        while others and one.unit.interpreter not in places[others[0][1]].interpreters:
            passed.append(heapq.heappop(others))
        if not others:
            return False
        idle_at, name = heapq.heappop(others)
        ends_at = idle_at + one.seconds * places[name].pace
        if ends_at >= end:
            return False
        for each in (*passed, (ends_at, name)):
            heapq.heappush(others, each)
    return True
