"""The published table, and what this run measured of the same: "Compiling ML models to C for fun" again.

The one place that holds the published figures. They come from another machine and another Python, so they stand beside
the run's own and are never divided by them; a ratio is within the publication, or within the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports.figures import Figure, Sheet, approximate, compile_time
from reports.headline import UNPLANNED, status_text
from reports.outcome import MEASURED
from reports.table import BASELINE, NAN, each, in_order, measured
from results import units

WORKLOADS = ("mnist", "mnist-b1000")
"""The published model and data, updated after each image and after each 1,000."""


@dataclass(frozen=True)
class Published:
    """A row of the published table: 60,000 MNIST images an epoch."""

    name: str
    engine: str
    """Which of our engines is the same idea."""
    compile_seconds: float
    epoch_seconds: float


PUBLISHED = (
    Published("Interpreted", BASELINE, 0.0, 60_000.0),
    Published("TCC", "tcc", 0.5, 45.0),
    Published("Clang -O0", "clang-O0", 30.0, 30.0),
    Published("Clang -O1", "clang-O1", 350.0, 8.0),
)

AS_FIRST_PUBLISHED = {"clang-O1": ("clang-O1-whole", "as first published, one function")}
"""The published form of an engine that has since taken another: shown beside it where it was measured."""

_NOTE = (
    "Published: “Compiling ML models to C for fun”, measured on another machine with another Python. "
    "Seconds of two machines are not to be compared; orders and ratios are. Each speedup is over the interpreter of its "
    "own side: over Interpreted as published, over baseline on the same interpreter in this run."
)


@dataclass(frozen=True)
class Counterpart:
    """What this run measured for a published row. Figures are NaN unless status is "measured"."""

    published: Published
    workload: str
    interpreter: str
    engine: str
    remark: str
    status: str
    compile_seconds: float
    image_seconds: float
    epoch_seconds: float
    extrapolated: bool
    speedup: float
    bits: str


def counterparts(table: pd.DataFrame) -> list[Counterpart]:
    """By workload, published row, engine and interpreter; none of a workload on which no compiled one was measured.

    Of the interpreters that measured one, the reference CPython and every PyPy; all of them where neither did.
    """
    return [found for workload in WORKLOADS for found in _of_workload(table, workload)]


def published_sheets(table: pd.DataFrame) -> tuple[Sheet, ...]:
    """The published table beside the measured one, a sheet a workload."""
    found = counterparts(table)
    names = dict.fromkeys(one.workload for one in found)
    return tuple(_sheet(name, [one for one in found if one.workload == name]) for name in names)


def _of_workload(table: pd.DataFrame, workload: str) -> Iterator[Counterpart]:
    rows = table[table["workload"] == workload]
    by_key = {(str(row.engine), str(row.interpreter)): row for row in each(rows)}
    hosts = _hosts(rows)
    for published in PUBLISHED:
        for interpreter in hosts:
            yield _counterpart(published, workload, published.engine, interpreter, by_key)
        whole, remark = AS_FIRST_PUBLISHED.get(published.engine, ("", ""))
        for interpreter in hosts:
            if (whole, interpreter) in by_key:
                yield _counterpart(published, workload, whole, interpreter, by_key, remark)


def _hosts(rows: pd.DataFrame) -> list[str]:
    compiled = {row.engine for row in PUBLISHED if row.engine != BASELINE} | {
        name for name, _ in AS_FIRST_PUBLISHED.values()
    }
    raced = measured(rows)
    raced = raced[raced["engine"].isin(compiled)]
    at_home = raced[raced["on_reference"].astype(bool) | raced["interpreter"].astype(str).str.startswith("pypy")]
    return in_order(raced if at_home.empty else at_home, "interpreter")


def _counterpart(
    published: Published,
    workload: str,
    engine: str,
    interpreter: str,
    by_key: dict[tuple[str, str], Any],
    remark: str = "",
) -> Counterpart:
    row = by_key.get((engine, interpreter))
    planned = row is not None
    return Counterpart(
        published=published,
        workload=workload,
        interpreter=interpreter,
        engine=engine,
        remark=remark,
        status=str(row.status) if planned else UNPLANNED,
        compile_seconds=row.compile_seconds if planned else NAN,
        image_seconds=row.sample_seconds if planned else NAN,
        epoch_seconds=row.epoch_seconds if planned else NAN,
        extrapolated=planned and bool(row.extrapolated),
        speedup=row.speedup if planned else NAN,
        bits=str(row.bits) if planned else "",
    )


def _sheet(workload: str, found: list[Counterpart]) -> Sheet:
    return Sheet(
        title=workload,
        names=3,
        headings=(
            *("published", "engine", "interpreter"),
            *("compile, published", "compile", "an image", "an epoch, published", "an epoch"),
            *("speedup, published", "speedup", "bits"),
        ),
        rows=tuple(_line(one) for one in found),
        notes=(_NOTE, *_whole_or_split(found)),
    )


def _line(one: Counterpart) -> tuple[Figure, ...]:
    published = one.published
    interpreted = PUBLISHED[0].epoch_seconds
    if one.status == MEASURED:
        compiled = Figure(compile_time(one.compile_seconds))
        bits = Figure(one.bits)
    else:
        compiled = Figure("not planned" if one.status == UNPLANNED else status_text(one.status), mark=one.status)
        bits = Figure(one.bits if one.bits == "different" else units.ABSENT, mark=one.bits)
    return (
        Figure(published.name),
        Figure(one.engine, one.remark),
        Figure(one.interpreter),
        Figure(compile_time(published.compile_seconds)),
        compiled,
        Figure(units.duration(one.image_seconds)),
        Figure(units.duration(published.epoch_seconds)),
        Figure(approximate(units.duration(one.epoch_seconds), one.extrapolated)),
        Figure(units.ratio(interpreted / published.epoch_seconds)),
        Figure(units.ratio(one.speedup)),
        bits,
    )


def _whole_or_split(found: list[Counterpart]) -> Iterator[str]:
    """What splitting the published function bought, on each interpreter that measured both."""
    seconds = {(one.engine, one.interpreter): one.compile_seconds for one in found}
    for engine, (whole, _) in AS_FIRST_PUBLISHED.items():
        for interpreter in dict.fromkeys(one.interpreter for one in found):
            split, first = seconds.get((engine, interpreter), NAN), seconds.get((whole, interpreter), NAN)
            if split > 0 and first > split:
                yield f"{engine} compiles {units.times(first / split)} as fast as {whole} on {interpreter}."
