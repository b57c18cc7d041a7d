"""Missing cells or profiles -> groups with the same status, reason and remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zoomgrad.reports.measured.headline import status_text


@dataclass(frozen=True)
class Absence:
    """Cells, or profiles, without a result for the same reason."""

    status: str
    reason: str
    remedy: str
    cells: tuple[str, ...]


def absences(missing: Iterable[tuple[str, str, str, str]]) -> tuple[Absence, ...]:
    """Group rows of (status, reason, remedy, key), in order of first occurrence."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for status, reason, remedy, key in missing:
        grouped.setdefault((status, reason, remedy), []).append(key)
    return tuple(
        Absence(status_text(status), reason, remedy, tuple(keys)) for (status, reason, remedy), keys in grouped.items()
    )
