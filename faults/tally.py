"""What a batch found: how many tries there were, and what went wrong in them."""

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
"""Field of a Tally -> its column. Each must be 0."""

MOST_NOTES = 20
"""That a batch keeps: a mistake that all tries meet needs no thousand lines."""


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
    """What went wrong, a line each."""
    remarks: list[str] = field(default_factory=list)
    """What this machine could not try."""

    def count(self, what: str, note: str, number: int = 1) -> None:
        """Add to one of COUNTS, and say why."""
        setattr(self, what, getattr(self, what) + number)
        if len(self.notes) < MOST_NOTES:
            self.notes.append(f"{COUNTS[what]}: {note}")

    @property
    def failures(self) -> int:
        """All counts together: 0 where nothing went wrong."""
        return sum(getattr(self, name) for name in COUNTS)


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of their counts; notes and remarks stay with the batches."""
    tallies = list(tallies)
    names = [each.name for each in fields(Tally) if each.name not in ("notes", "remarks")]
    return Tally(**{name: sum(getattr(tally, name) for tally in tallies) for name in names})
