"""The progress of runs and profiles: a live bar on a terminal, plain lines without one."""

from __future__ import annotations

import statistics
from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from zoomgrad.harness.cli.display import seconds_text
from zoomgrad.results import units
from zoomgrad.results.profile import AnyProfile
from zoomgrad.results.record import Cell, Record


class _Bar:
    """Live progress bar on a terminal. Items that did not go well leave a line there."""

    def __init__(self, console: Console, total: int, last: ProgressColumn) -> None:
        self._console = console
        self._total = total
        self._done = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            last,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=total, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def _finish(self, line: str, *, shown: bool, left: str = "") -> None:
        """Count one more item as done, and print its line if `shown`."""
        self._done += 1
        self._bar.update(self._task, completed=self._done, left=left)
        if shown:
            self._say(line)

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class RunProgress(_Bar):
    """Progress of a run: the observer of its schedule. Without a terminal, one line for each block."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console, total, TextColumn("{task.fields[left]}"))
        self._block = -1
        self._counts = Counter[str]()
        self._left = ""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_block()
        super().__exit__(kind, error, at)

    def started(self, cell: Cell, block: int) -> None:
        self._begin(block)
        self._bar.update(self._task, description=f"{cell.key} block {block + 1}")

    def finished(self, record: Record, seconds_left: float) -> None:
        what = record.reason.splitlines()[0] if record.reason else _step_text(record)
        host = f"{record.host}: " if record.host else ""
        line = f"{host}{record.cell.key} block {record.block + 1}: {record.status}, {what}"
        self._begin(record.block)
        self._counts[record.status] += 1
        self._left = f"{seconds_text(seconds_left)} left"
        self._finish(line, shown=record.status != "measured", left=self._left)

    def extended(self, cells: int) -> None:
        self._total += cells
        self._bar.update(self._task, total=self._total)

    def abandoned(self) -> None:
        self.extended(-1)

    def _begin(self, block: int) -> None:
        if block != self._block:
            self._end_block()
            self._block = block

    def _end_block(self) -> None:
        if self._counts and not self._console.is_terminal:
            counted = ", ".join(f"{count} {status}" for status, count in self._counts.items())
            self._say(f"[{self._done}/{self._total}, {self._left}] block {self._block + 1}: {counted}")
        self._counts.clear()


class ProfileProgress(_Bar):
    """Progress of profiling: the current profiler and cell."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console, total, TimeElapsedColumn())

    def show(self, cell: Cell, profiler: str, profile: AnyProfile | None) -> None:
        """Show that a profiler starts (`profile` is None) or has finished."""
        if profile is None:
            self._bar.update(self._task, description=f"{profiler} on {cell.key}")
            return
        what = profile.reason.splitlines()[0] if profile.reason else units.count(profile.steps, "step")
        prefix = "" if self._console.is_terminal else f"[{self._done + 1}/{self._total}] "
        shown = profile.status != "measured" or not self._console.is_terminal
        self._finish(f"{prefix}{profiler} on {cell.key}: {profile.status}, {what}", shown=shown)


def _step_text(record: Record) -> str:
    return f"{units.duration(statistics.fmean(record.step_seconds))} per step"
