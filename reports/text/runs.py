"""Runs -> a sheet that says when, where and from which sources each run was made."""

from __future__ import annotations

from collections.abc import Sequence

from reports.measured.races import machines, names
from reports.text.figures import Figure, Sheet
from results import units
from results.record import Run

_RUN_HEADINGS = ("run", "machine", "processor", "preset", "commit", "load at start")


def sheet_of_runs(runs: Sequence[Run]) -> Sheet:
    """One row per run: its time, machine, preset, commit and load at start."""
    rows = zip(runs, names(runs), machines(runs), strict=True)
    return Sheet(
        "The runs", len(_RUN_HEADINGS), _RUN_HEADINGS, tuple(_of_run(run, name, where) for run, name, where in rows)
    )


def _of_run(run: Run, name: str, machine: str) -> tuple[Figure, ...]:
    processor, *rest, load = (run.machine.get(fact, "") for fact in ("processor", "cores", "system", "load at start"))
    return (
        Figure(name, f"{run.created_at:%Y-%m-%d %H:%M %Z}"),
        Figure(machine.removeprefix("machine ")),
        Figure(processor or units.ABSENT, ", ".join(filter(None, rest))),
        Figure(run.preset, units.count(run.blocks, "block")),
        Figure(run.commit or units.ABSENT),
        Figure(load or units.ABSENT),
    )
