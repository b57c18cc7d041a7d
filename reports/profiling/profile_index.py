"""Run and profiles -> an index of the profiles in the run's order. Every section on profiles reads them from here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.results.profile import AnyProfile, Profile
from zoomgrad.results.record import Cell, Run
from zoomgrad.results.store import folder_name

Kind = TypeVar("Kind", bound=Profile)
Pair = tuple[str, str]
"""An interpreter and a workload; profiles of the same pair are comparable."""

COLLECTOR, EVALUATION = "garbage collector", "evaluation loop"
"""Symbol groups that claims are about."""
SCALENE_PAGE = "scalene.html"
"""Scalene's own standalone page, which it leaves in a cell's folder."""


@dataclass(frozen=True)
class ProfileIndex:
    """A run's profiles, in the run's order of workloads, interpreters and engines."""

    run: Run
    profiles: tuple[AnyProfile, ...]
    pages: Collection[Cell] = ()
    """Cells with a page by Scalene."""

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Return the measured profiles of one kind."""
        return [profile for profile in self.profiles if isinstance(profile, kind) and profile.status == MEASURED]

    def by_pair(self, kind: type[Kind]) -> dict[Pair, dict[str, Kind]]:
        """Return the measured profiles of one kind by interpreter and workload, then by engine."""
        by_pair: dict[Pair, dict[str, Kind]] = {}
        for profile in self.of(kind):
            cell = profile.cell
            by_pair.setdefault((cell.interpreter, cell.workload), {})[cell.engine] = profile
        return by_pair

    def why_not(self, cell: Cell, profiler: str) -> str:
        """Say why the cell has no measured profile by this profiler."""
        for profile in self.profiles:
            if profile.cell == cell and profile.profiler == profiler:
                return f"{profile.status}: {profile.reason}" if profile.reason else f"{profiler} saw nothing of {cell}"
        return f"{profiler} did not run on {cell}"


def page_of(cell: Cell) -> str:
    """Return the path of Scalene's page relative to the report, quoted for a link."""
    return f"profiles/{quote(folder_name(cell))}/{SCALENE_PAGE}"


def profile_index(run: Run, profiles: Iterable[AnyProfile], pages: Collection[Cell] = ()) -> ProfileIndex:
    """Put profiles in the run's order; names unknown to the run come last."""
    orders = [
        {name: index for index, name in enumerate(names)} for names in (run.workloads, run.interpreters, run.engines)
    ]

    def place(profile: AnyProfile) -> tuple[object, ...]:
        cell = profile.cell
        names = (cell.workload, cell.interpreter, cell.engine)
        known = (order.get(name, len(order)) for order, name in zip(orders, names, strict=True))
        return (*known, *names, profile.profiler)

    return ProfileIndex(run, tuple(sorted(profiles, key=place)), pages)
