"""Tally of a batch: its number of tries and its failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

COUNTS = {
    "lost": "records lost",
    "torn": "records torn",
    "crashes": "crashes",
    "hangs": "hangs",
    "touched": "files touched outside the run folder",
    "mismatches": "mismatches",
    "left_over": "processes left over",
}
"""Fields of a Tally and their column headings. Each count must be 0."""

MOST_NOTES = 20
"""Notes that a batch keeps: a failure in every try does not need a thousand lines."""


@dataclass
class Tally:
    """Counts of one batch, or the sum of several."""

    tries: int = 0
    lost: int = 0
    torn: int = 0
    crashes: int = 0
    hangs: int = 0
    touched: int = 0
    mismatches: int = 0
    left_over: int = 0
    notes: list[str] = field(default_factory=list)
    """One line per failure."""
    remarks: list[str] = field(default_factory=list)
    """Tries that this machine does not support."""

    def count(self, what: str, note: str, number: int = 1) -> None:
        """Add to one of COUNTS, with a note that says why."""
        setattr(self, what, getattr(self, what) + number)
        if len(self.notes) < MOST_NOTES:
            self.notes.append(f"{COUNTS[what]}: {note}")

    @property
    def failures(self) -> int:
        """Sum of all counts."""
        return sum(getattr(self, name) for name in COUNTS)


def total(tallies: Iterable[Tally]) -> Tally:
    """Sum of the tallies' counts, without notes and remarks."""
    tallies = list(tallies)
    names = [each.name for each in fields(Tally) if each.name not in ("notes", "remarks")]
    return Tally(**{name: sum(getattr(tally, name) for tally in tallies) for name in names})
