"""The progress of a run: a line that changes on a terminal, one line for each block without one."""

from __future__ import annotations

from collections import Counter
from typing import Self

from zoomgrad.harness.cli.console import out, say
from zoomgrad.harness.cli.display import seconds_text
from zoomgrad.harness.run.schedule import Observer
from zoomgrad.results.record import Cell, Record


class RunProgress(Observer):
    """The observer of a run's schedule. A cell without a result leaves a line anywhere."""

    def __init__(self) -> None:
        self._block = -1
        self._left = ""
        self._counts = Counter[str]()
        self._status = out.status("starting", refresh_per_second=1)  # a refresh wakes the harness during a timing

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._status.stop()
        self._begin(-1)

    def started(self, cell: Cell, block: int) -> None:
        self._begin(block)
        self._status.update(f"block {block + 1}: {cell.key}{self._left}")

    def finished(self, record: Record, seconds_left: float) -> None:
        self._begin(record.block)
        self._counts[record.status] += 1
        self._left = f", {seconds_text(seconds_left)} left"
        if record.reason:
            host = f"{record.host}: " if record.host else ""
            what = record.reason.splitlines()[0]
            say(f"{host}{record.cell.key} block {record.block + 1}: {record.status}, {what}")

    def _begin(self, block: int) -> None:
        """End the line of the block before, if this is another one."""
        if block != self._block and self._counts and not out.is_terminal:
            counted = ", ".join(f"{count} {status}" for status, count in self._counts.items())
            say(f"block {self._block + 1}: {counted}{self._left}")
        if block != self._block:
            self._counts.clear()
            self._block = block
