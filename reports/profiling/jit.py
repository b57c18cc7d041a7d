"""JIT profiles -> what PyPy reports about its just-in-time compiler."""

from __future__ import annotations

from collections.abc import Iterator

from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.text.figures import Figure, Sheet, share
from zoomgrad.results import units
from zoomgrad.results.profile import JitProfile

TOO_LONG = ("too long", "segment")
"""Words in PyPy's reason if it gives up a trace at the length limit, or cuts it there."""
_NOTE = (
    "Shares are of the wall time of all steps, including the warm-up. “given up”: traces, with PyPy's reasons; a trace "
    "that reaches a length limit is given up or cut."
)


def too_long(profile: JitProfile) -> int:
    """Count the traces that reached the length limit: given up or cut."""
    return sum(count for reason, count in profile.aborts.items() if any(words in reason for words in TOO_LONG))


def compiles(profile: JitProfile) -> bool:
    """Whether PyPy ends up running it compiled, with no trace at the length limit."""
    return profile.loops + profile.bridges > 0 and too_long(profile) == 0


def jits(index: ProfileIndex) -> Iterator[Sheet]:
    """Yield a sheet with one row for each cell on PyPy, if there is any."""
    rows = tuple(map(_row, index.of(JitProfile)))
    headings = (
        *("engine", "interpreter", "workload", "tracing", "back end", "loops", "bridges", "machine code"),
        *("given up", "last steps"),
    )
    if rows:
        yield Sheet("PyPy's compiler", 3, headings, rows, (_NOTE,))


def _row(profile: JitProfile) -> tuple[Figure, ...]:
    first, last = profile.first_step_seconds, profile.last_step_seconds
    reasons = ", ".join(f"{reason}: {count:,}" for reason, count in profile.aborts.items())
    return (
        *map(Figure, (profile.cell.engine, profile.cell.interpreter, profile.cell.workload)),
        *(Figure(share(part)) for part in (profile.tracing, profile.backend)),
        *(Figure(f"{number:,}") for number in (profile.loops, profile.bridges)),
        Figure(units.size(profile.machine_code_bytes)),
        Figure(f"{sum(profile.aborts.values()):,}", reasons, "steep" if too_long(profile) else ""),
        Figure(units.duration(last), f"first {units.duration(first)}") if last else Figure(units.ABSENT),
    )
