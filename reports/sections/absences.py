"""View and profiles -> what was not measured, with the reason and the remedy."""

from __future__ import annotations

from collections.abc import Sequence

from zoomgrad.reports.measured.headline import status_text
from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import each
from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.reports.view import View
from zoomgrad.results import units

_MOST_KEYS = 3


def absences(view: View, index: ProfileIndex | None) -> Section | None:
    """One row for each reason; None if everything was measured."""
    cells = [
        (str(row.status), str(row.reason), str(row.remedy), f"{row.engine}/{row.interpreter}/{row.workload}")
        for row in each(view.table[view.table["status"] != MEASURED])
    ]
    profiles = [
        (str(one.status), one.reason, one.remedy, f"{one.profiler} of {one.cell}")
        for one in (index.profiles if index else ())
        if one.status != MEASURED
    ]
    if not cells and not profiles:
        return None
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for status, reason, remedy, key in (*cells, *profiles):
        grouped.setdefault((status, reason, remedy), []).append(key)
    rows = tuple(
        (
            Figure(status_text(status), mark=status),
            Figure(_keys(keys), mark="reason"),
            *(Figure(text, mark="reason") for text in why),
        )
        for (status, *why), keys in grouped.items()
    )
    counted = (units.count(len(missing), what) for missing, what in ((cells, "cell"), (profiles, "profile")) if missing)
    statuses = dict.fromkeys(row[0].text for row in rows)
    answer = f"{' and '.join(counted)}: {', '.join(statuses)}"
    sheet = Sheet("", 4, ("status", "what", "reason", "remedy"), rows)
    return Section("absences", "What was not measured?", answer, (sheet,))


def _keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MOST_KEYS} more" if len(keys) > _MOST_KEYS else ""
    return f"{', '.join(keys[:_MOST_KEYS])}{more}"
