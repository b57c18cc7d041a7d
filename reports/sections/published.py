"""Table -> the published table of "Compiling ML models to C for fun" beside what this run measured.

This is the only place that holds the published figures. They come from another machine, so the report shows them next
to the run's own and never divides one by the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.headline import PUBLISHED_WORKLOADS
from zoomgrad.reports.measured.table import each, in_order, ladder, measured
from zoomgrad.reports.text.figures import Figure, Section, Sheet, approximate, compile_time, ratio, time
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE


@dataclass(frozen=True)
class Published:
    """A row of the published table. An epoch is 60,000 MNIST images."""

    name: str
    engine: str
    """The engine that implements it today."""
    compile_seconds: float
    epoch_seconds: float


PUBLISHED = (
    Published("Interpreted", BASELINE, 0.0, 60_000.0),
    Published("TCC", "tcc", 0.5, 45.0),
    Published("Clang -O0", "clang-O0", 30.0, 30.0),
    Published("Clang -O1", "clang-O1", 350.0, 8.0),
)

AS_FIRST_PUBLISHED = {row.engine: f"{row.engine}-published" for row in PUBLISHED if row.engine != BASELINE}
"""Today's engine -> the engine that generates the C as the post did."""

BATCHES, IMAGES = PUBLISHED_WORKLOADS
"""Workloads with an update after 1,000 images, as published, and after each image."""

_LEAD = (
    "Medians over processes, with the 95 % interval of an epoch or a speedup in brackets. Published figures are from "
    "“Compiling ML models to C for fun”, measured on another machine: compare rankings, not seconds. Speedups are over "
    "baseline on the same interpreter. An epoch has 60,000 images. ≈: extrapolated from the steps run."
)


def published(table: pd.DataFrame) -> Section | None:
    """One sheet per workload of the published model on which one of the published compilers was measured, if any."""
    results = ladder(measured(table))
    made = (_trade_off(results), _images(results))
    sheets = tuple(Sheet(title, 1, headings, tuple(rows)) for title, headings, rows in made if headings)
    return Section("published", "The published table, measured again", _LEAD, sheets) if sheets else None


Made = tuple[str, tuple[str, ...], Iterable[tuple[Figure, ...]]]


def _trade_off(results: pd.DataFrame) -> Made:
    rows = _rows(results, BATCHES)
    hosts = in_order(rows, "interpreter")
    known = {row.engine: row for row in PUBLISHED}
    known |= {form: known.pop(engine) for engine, form in AS_FIRST_PUBLISHED.items() if _there(rows, form)}

    def made() -> Iterator[tuple[Figure, ...]]:
        for engine, by_host in _by_engine(rows):
            as_published = known.get(engine)
            yield (
                Figure(engine),
                Figure(compile_time(as_published.compile_seconds) if as_published else ""),
                Figure(units.duration(as_published.epoch_seconds) if as_published else ""),
                *(figure for host in hosts for figure in compile_and_epoch(by_host.get(host))),
            )

    sides = ("published", *hosts)
    headings = ("engine", *(f"{side}: {what}" for side in sides for what in _PAIR)) if hosts else ()
    return BATCHES, headings, made()


_PAIR = ("compile", "epoch")


def _images(results: pd.DataFrame) -> Made:
    rows = _rows(results, IMAGES)
    hosts = in_order(rows, "interpreter")

    def made() -> Iterator[tuple[Figure, ...]]:
        for engine, by_host in _by_engine(rows):
            yield (Figure(engine), *(figure for host in hosts for figure in _image(by_host.get(host))))

    headings = ("engine", *(f"{host}: {what}" for host in hosts for what in ("compile", "image", "speedup")))
    return IMAGES, headings if hosts else (), made()


def _rows(results: pd.DataFrame, workload: str) -> pd.DataFrame:
    """Return a workload's rows; none if no published compiler was measured on it."""
    rows = results[results["workload"] == workload]
    return rows if rows["engine"].isin([*AS_FIRST_PUBLISHED, *AS_FIRST_PUBLISHED.values()]).any() else rows.iloc[:0]


def _there(rows: pd.DataFrame, engine: str) -> bool:
    return bool((rows["engine"] == engine).any())


def _by_engine(rows: pd.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    """Group rows by engine, slowest first on the reference CPython."""
    found: dict[str, dict[str, Any]] = {}
    for row in each(rows.sort_values(["on_reference", "step_seconds"], ascending=[False, False])):
        found.setdefault(str(row.engine), {})[str(row.interpreter)] = row
    yield from found.items()


def compile_and_epoch(row: Any) -> tuple[Figure, Figure]:
    """Return the compile time and the epoch with its interval; absent for a row that is None."""
    if row is None:
        return Figure(units.ABSENT), Figure(units.ABSENT)
    epoch = time(row, "epoch_seconds")
    return _compile(row), Figure(approximate(epoch.text, row.extrapolated), epoch.below)


def _image(row: Any) -> tuple[Figure, Figure, Figure]:
    if row is None:
        return Figure(units.ABSENT), Figure(units.ABSENT), Figure(units.ABSENT)
    return _compile(row), Figure(units.duration(row.sample_seconds)), ratio(row, "speedup")


def _compile(row: Any) -> Figure:
    return Figure(compile_time(row.compile_seconds))
