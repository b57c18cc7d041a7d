"""View and profiles -> what was not measured, with the reason and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zoomgrad.reports.measured.headline import status_text
from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import each
from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.reports.view import View
from zoomgrad.results import units

_MOST_KEYS = 3
Missing = tuple[str, str, str, str]
"""Status, reason, remedy, and key of a cell or profile."""


def absences(view: View, index: ProfileIndex | None) -> Section | None:
    """One row for each reason; None if everything was measured."""
    cells = list(_cells(view))
    profiles = list(_profiles(index)) if index else []
    if not cells and not profiles:
        return None
    counted = (units.count(len(missing), what) for missing, what in ((cells, "cell"), (profiles, "profile")) if missing)
    grouped: dict[Missing, list[str]] = {}
    for status, reason, remedy, key in (*cells, *profiles):
        grouped.setdefault((status, reason, remedy, ""), []).append(key)
    statuses = dict.fromkeys(status_text(status) for status, *_ in grouped)
    rows = tuple(
        (
            Figure(status_text(status), mark=status),
            Figure(_keys(keys)),
            Figure(reason, mark="reason"),
            Figure(remedy, mark="reason"),
        )
        for (status, reason, remedy, _), keys in grouped.items()
    )
    answer = f"{' and '.join(counted)}: {', '.join(statuses)}"
    sheet = Sheet("", 4, ("status", "what", "reason", "remedy"), rows)
    return Section("absences", "What was not measured?", answer, (sheet,))


def _cells(view: View) -> Iterator[Missing]:
    for row in each(view.table[view.table["status"] != MEASURED]):
        yield str(row.status), str(row.reason), str(row.remedy), f"{row.engine}/{row.interpreter}/{row.workload}"


def _profiles(index: ProfileIndex) -> Iterator[Missing]:
    for profile in index.profiles:
        if profile.status != MEASURED:
            yield profile.status, profile.reason, profile.remedy, f"{profile.profiler} of {profile.cell}"


def _keys(keys: Iterable[str]) -> str:
    names = list(keys)
    more = f" and {len(names) - _MOST_KEYS} more" if len(names) > _MOST_KEYS else ""
    return f"{', '.join(names[:_MOST_KEYS])}{more}"
