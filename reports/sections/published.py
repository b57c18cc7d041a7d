"""View -> the published table of "Compiling ML models to C for fun" beside what this run measured.

This is the only place that holds the published figures. They come from another machine, so the report shows them next
to the run's own and never divides one by the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.headline import PUBLISHED_WORKLOADS, by_coverage
from zoomgrad.reports.measured.table import each, main_rows, measured
from zoomgrad.reports.text.figures import Figure, Section, Sheet, compile_time, epoch_time
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE


@dataclass(frozen=True)
class Published:
    """A row of the published table. An epoch is 60,000 MNIST images."""

    name: str
    engine: str
    """The engine that implements it today; with the suffix `-published`, it generates the C as the post did."""
    compile_seconds: float
    epoch_seconds: float


PUBLISHED = (
    Published("Interpreted", BASELINE, 0.0, 60_000.0),
    Published("TCC", "tcc", 0.5, 45.0),
    Published("Clang -O0", "clang-O0", 30.0, 30.0),
    Published("Clang -O1", "clang-O1", 350.0, 8.0),
)


def published(view: View) -> Section | None:
    """The published rows beside the engines that implement them, slowest first; None if none was measured."""
    rows = main_rows(measured(view.table))
    compilers = {row.engine for row in PUBLISHED} - {BASELINE}
    forms = compilers | {f"{engine}-published" for engine in compilers}
    for workload in sorted(PUBLISHED_WORKLOADS, key=lambda name: name == view.headline_workload):
        here = rows[rows["workload"] == workload]
        if here["engine"].isin(forms).any():
            return _section(workload, here)
    return None


def _section(workload: str, rows: pd.DataFrame) -> Section:
    host = by_coverage(rows)[0]
    cells = {str(row.engine): row for row in each(rows[rows["interpreter"] == host])}
    lines = [_line(post, cells) for post in PUBLISHED if post.engine in cells or f"{post.engine}-published" in cells]
    engine, *figures = (figure.text for figure in lines[-1])
    answer = "{}: {} to compile and {} an epoch in the post, {} and {} here".format(engine, *figures)
    headings = ("engine", *(f"{where}: {what}" for where in ("the post", host) for what in ("compile", "epoch")))
    note = "The post's figures are from another machine: compare rankings, not seconds."
    sheet = Sheet(workload, 1, headings, tuple(lines))
    return Section("published", "What did the post measure?", answer, (sheet,), (), (note,))


def _line(post: Published, cells: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Return the post's figures and the run's, of the engine that generates the C as the post did if there is one."""
    engine = f"{post.engine}-published" if f"{post.engine}-published" in cells else post.engine
    row = cells[engine]
    there = compile_time(post.compile_seconds), units.duration(post.epoch_seconds)
    return tuple(map(Figure, (engine, *there, compile_time(row.compile_seconds), epoch_time(row).text)))
