"""Generated C as text: its translation units, and the files of C that are the same for every graph."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """The translation units, and what their caller has to provide."""

    units: list[str]
    workspace: int

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(len(unit) for unit in self.units)  # it is ASCII
