"""Plans, runs, profiles and trainings on a terminal, or as plain lines without one."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from zoomgrad.results import units
from zoomgrad.results.printable import printable

if TYPE_CHECKING:  # importing these would more than double the start-up time of `list` and `train`
    from zoomgrad.harness.plan.planning import Plan
    from zoomgrad.results.profile import AnyProfile
    from zoomgrad.results.record import Cell, Record

PLAIN_SECONDS = 10.0
"""Time between two progress lines of a training without a terminal."""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Group:
    """Table of text below its title. Markup in cells is printed literally."""
    made = Table(header_style="bold", box=None, pad_edge=False, collapse_padding=True)
    for index, column in enumerate(columns):
        made.add_column(column, overflow="fold", no_wrap=index == 0)  # the first column names the row
    for row in rows:
        made.add_row(*(escape(cell) for cell in row))
    # Rich would wrap the table's own title to the table's width.
    return Group(Text(title, style="italic"), made)


def seconds_text(seconds: float) -> str:
    """Seconds as `45 s`, `3 min 20 s` or `2 h 5 min`. For estimates; results use `results.units`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def plan_table(plan: Plan) -> Group:
    """Engines and estimated time for each interpreter and workload of the plan."""
    rows = []
    by_place: dict[tuple[str, str], list[Cell]] = {}
    for cell in plan.run.cells:
        by_place.setdefault((cell.interpreter, cell.workload), []).append(cell)
    for (interpreter, workload), cells in by_place.items():
        absent = plan.missing.get(interpreter)
        estimate = sum(plan.cell_seconds(cell) for cell in cells)
        time = f"skipped; install it with: {absent.remedy}" if absent else seconds_text(estimate)
        rows.append((interpreter, workload, ", ".join(cell.engine for cell in cells), time))
    title = f"{plan.run.preset}: {len(plan.run.cells)} cells × {plan.run.blocks} blocks"
    return table(title, ("interpreter", "workload", "engines", "estimate"), rows)


class _Bar:
    """Live progress bar on a terminal, else one line per finished item."""

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

    def _finish(self, line: str, *, well: bool, left: str = "") -> None:
        """Count one more item as done. On a terminal, only items that did not go well leave a line."""
        self._done += 1
        self._bar.update(self._task, completed=self._done, left=left)
        if not well or not self._console.is_terminal:
            so_far = ", ".join(filter(None, (f"{self._done}/{self._total}", left)))
            prefix = "" if self._console.is_terminal else f"[{so_far}] "
            self._console.print(prefix + line, markup=False, highlight=False, soft_wrap=True)


class RunProgress(_Bar):
    """Progress of a run: the observer of its schedule."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console, total, TextColumn("{task.fields[left]}"))

    def started(self, cell: Cell, block: int) -> None:
        self._bar.update(self._task, description=f"{cell.key} block {block + 1}")

    def finished(self, record: Record, seconds_left: float) -> None:
        what = record.reason.splitlines()[0] if record.reason else _step_text(record)
        host = f"{record.host}: " if record.host else ""
        line = f"{host}{record.cell.key} block {record.block + 1}: {record.status}, {what}"
        self._finish(line, well=record.status == "measured", left=f"{seconds_text(seconds_left)} left")

    def extended(self, cells: int) -> None:
        self._total += cells
        self._bar.update(self._task, total=self._total)

    def abandoned(self) -> None:
        self.extended(-1)


class ProfileProgress(_Bar):
    """Progress of profiling: the current profiler and cell."""

    def __init__(self, console: Console, planned: Sequence[object]) -> None:
        super().__init__(console, len(planned), TimeElapsedColumn())

    def show(self, cell: Cell, profiler: str, profile: AnyProfile | None) -> None:
        """Show that a profiler starts (`profile` is None) or has finished."""
        if profile is None:
            self._bar.update(self._task, description=f"{profiler} on {cell.key}")
            return
        what = profile.reason.splitlines()[0] if profile.reason else units.count(profile.steps, "step")
        self._finish(f"{profiler} on {cell.key}: {profile.status}, {what}", well=profile.status == "measured")


def _step_text(record: Record) -> str:
    ready = f", ready in {units.duration(record.ready_seconds)}" if record.ready_seconds else ""
    return f"{units.duration(statistics.fmean(record.step_seconds))} per step{ready}"


class TrainingProgress:
    """Display of the events of `harness.worker.train`: a live line on a terminal, else one every PLAIN_SECONDS."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status("preparing") if console.is_terminal else None
        self._start: dict[str, Any] = {}
        self.ended = False
        self.failures: list[str] = []
        self.saved = ""
        """The file that the parameters are in."""
        self._printed_at = time.monotonic()
        if self._status:
            self._status.start()

    def show(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "start":
            self._start = event
        elif kind == "failed":
            self.failures.append(event["reason"])
        elif kind == "prepared" and event["shapes"]:
            each = ", ".join(f"{inputs:,}: {units.duration(seconds)}" for inputs, seconds in event["shapes"])
            total = units.duration(event["seconds"])
            shared = event["seconds"] - math.fsum(seconds for _, seconds in event["shapes"])
            rest = f"; shared stages: {units.duration(shared)}" if shared > 0 else ""
            self._print(f"graphs, by number of inputs, compiled in {total}: {each}{rest}")
        elif kind == "saved":
            self.saved = str(event["path"])
        elif kind == "end":
            self._print(end_line(event))
            self.ended = True
            if event.get("samples"):
                self._print(f"invented: {', '.join(map(printable, event['samples']))}")
        elif kind == "progress":
            steps = event["steps"] - (event["epoch"] - 1) * self._start["steps_per_epoch"]
            line = (
                f"seed {self._start['seed']}  epoch {event['epoch']}/{self._start['epochs']}  "
                f"step {steps:,}/{self._start['steps_per_epoch']:,}  loss {event['loss']:.4g}"
            )
            if self._status:
                self._status.update(line)
            elif time.monotonic() - self._printed_at > PLAIN_SECONDS:
                self._printed_at = time.monotonic()
                self._print(line)
        elif kind == "epoch":
            self._print(
                f"epoch {event['epoch']}: mean loss {event['loss']:.4g}, accuracy {event['accuracy']:.2%}, "
                f"{event['train_seconds']:.2f} s"
            )

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self._status:
            self._status.stop()


def end_line(end: dict[str, Any]) -> str:
    """One line about a finished training: epochs, loss, accuracy and times."""
    parts = [f"seed {end['seed']}: {units.count(end['epochs'], 'epoch')}, loss {end['loss']:.4g}"]
    if end["converged"] is not None:
        figure, value = end["figure"]
        named = f"{figure} {value:.4g}, " if value != end["loss"] else ""
        parts.append(named + ("within the tolerance" if end["converged"] else "tolerance not reached"))
    parts.append(f"accuracy {end['accuracy']:.2%} on {end['evaluated_on']}")
    seconds = end["train_seconds"]
    parts.append(f"{units.duration(seconds)}, {units.duration(seconds / end['steps'])} per step")
    return ", ".join(parts)
