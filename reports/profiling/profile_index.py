"""Run and profiles -> an index of the profiles in the run's order: the one door through which they enter a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

import pandas as pd

from reports.measured.outcome import MEASURED
from reports.text.absence import Absence, absences
from results.profile import AnyProfile, Profile
from results.record import BASELINE, Cell, Run
from results.store import folder_name

Kind = TypeVar("Kind", bound=Profile)
Pair = tuple[str, str]
"""An interpreter and a workload: profiles of the same pair may be read side by side."""

COLLECTOR, DICTIONARIES, EVALUATION = "garbage collector", "dictionaries", "evaluation loop"
"""Groups of symbols that a report speaks of by name; the others are only shown."""
SCALENE_PAGE = "scalene.html"
STACKS = ".folded"
"""Suffix of a file of stacks; its stem is the profiler."""


@dataclass(frozen=True)
class ProfileIndex:
    """A run's profiles, by the run's workloads, interpreters and engines."""

    run: Run
    profiles: tuple[AnyProfile, ...]
    files: Mapping[Cell, frozenset[str]] = field(default_factory=dict)
    """What else lies in a cell's folder, by name."""

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The measured profiles of one kind."""
        return [profile for profile in self.profiles if isinstance(profile, kind) and profile.status == MEASURED]

    def by_pair(self, kind: type[Kind]) -> dict[Pair, dict[str, Kind]]:
        """The same by interpreter and workload, then by engine."""
        found: dict[Pair, dict[str, Kind]] = {}
        for profile in self.of(kind):
            cell = profile.cell
            found.setdefault((cell.interpreter, cell.workload), {})[cell.engine] = profile
        return found

    def why_not(self, cell: Cell, profiler: str) -> str:
        """Why there is no such measured profile of the cell."""
        for profile in self.profiles:
            if profile.cell == cell and profile.profiler == profiler:
                return f"{profile.status}: {profile.reason}" if profile.reason else f"{profiler} saw nothing of {cell}"
        return f"{profiler} did not run on {cell}"

    def is_variant(self, profile: Profile) -> bool:
        """Whether its engine is the baseline, or was made from it step by step without compiling anything."""
        engine, passed = profile.cell.engine, set[str]()
        while engine != BASELINE and engine in self.run.engines.keys() - passed:
            passed.add(engine)
            engine = self.run.engines[engine].builds_on
        return engine == BASELINE and not profile.preparations

    def absences(self) -> tuple[Absence, ...]:
        """Profiles that saw nothing, and why."""
        return absences(
            (profile.status, profile.reason, profile.remedy, f"{profile.profiler}: {profile.cell}")
            for profile in self.profiles
            if profile.status != MEASURED
        )

    def has(self, cell: Cell, name: str) -> bool:
        """Whether a file of that name lies in the cell's folder."""
        return name in self.files.get(cell, ())

    def path(self, cell: Cell, name: str) -> str:
        """Where such a file is, seen from the report, quoted for a link."""
        return f"profiles/{quote(folder_name(cell))}/{quote(name)}"


def profile_index(
    run: Run, profiles: Iterable[AnyProfile], files: Mapping[Cell, frozenset[str]] | None = None
) -> ProfileIndex:
    """Put profiles in the run's order; what the run does not know comes last."""
    orders = [
        {name: index for index, name in enumerate(names)} for names in (run.workloads, run.interpreters, run.engines)
    ]

    def place(profile: AnyProfile) -> tuple[object, ...]:
        cell = profile.cell
        names = (cell.workload, cell.interpreter, cell.engine)
        known = (order.get(name, len(order)) for order, name in zip(orders, names, strict=True))
        return (*known, *names, profile.profiler)

    return ProfileIndex(run, tuple(sorted(profiles, key=place)), files or {})


def in_runs_order(table: pd.DataFrame, run: Run) -> pd.DataFrame:
    """The same rows, for charts: `engine` and `interpreter` are ordered categories in the run's order, `on_reference`
    marks the reference CPython's rows.
    """
    table["on_reference"] = table["interpreter"] == run.reference_interpreter
    for key, known in (("engine", run.engines), ("interpreter", run.interpreters)):
        table[key] = pd.Categorical(table[key], categories=list(dict.fromkeys([*known, *table[key]])), ordered=True)
    return table


def flame_name(profiler: str) -> str:
    """The file of a flame graph."""
    return f"flame-{profiler}.svg"
