"""Table -> the published table of "Compiling ML models to C for fun" beside what this run measured.

This is the only place that holds the published figures. They come from another machine, so the report shows them next
to the run's own and never divides one by the other; a ratio is within the publication or within the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports.measured.headline import PUBLISHED_WORKLOADS, UNPLANNED, status_text
from reports.measured.outcome import MEASURED
from reports.measured.table import NAN, at_home, each, in_order, measured
from reports.text.figures import Figure, Section, Sheet, approximate, compile_time
from results import units
from results.record import BASELINE


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

WHOLE = {"clang-O1": "clang-O1-whole"}
"""Today's engine -> the same engine with one function per pass; the only difference is splitting."""

REMARKS = {
    **dict.fromkeys(AS_FIRST_PUBLISHED.values(), "as first published"),
    **dict.fromkeys(WHOLE.values(), "one function per pass"),
}
"""Other form of an engine -> the remark that the table shows with it."""

_LEAD = (
    "Published figures are from “Compiling ML models to C for fun”, measured on another machine: compare rankings and "
    "ratios, not seconds. A published speedup is over the published Interpreted row; this run's is over baseline on "
    "the same interpreter. Below each of today's engines are, where measured, the C as first published and the same "
    "engine with one function per pass."
)


@dataclass(frozen=True)
class Counterpart:
    """This run's figures for a published row; NaN unless status is "measured"."""

    row: Published
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
    """List counterparts by workload, published row, engine and interpreter.

    A workload counts only if one of its compiled engines was measured. Of the interpreters that measured one, use the
    reference CPython and every PyPy, or all of them if neither measured any.
    """
    return [found for workload in reversed(PUBLISHED_WORKLOADS) for found in _of_workload(table, workload)]


def published(table: pd.DataFrame) -> Section | None:
    """The published table beside the measured one, one sheet per workload; None if nothing comparable was measured."""
    found = counterparts(table)
    names = dict.fromkeys(one.workload for one in found)
    sheets = tuple(_sheet(name, [one for one in found if one.workload == name]) for name in names)
    return Section("published", "The published table, measured again", _LEAD, sheets) if sheets else None


def _of_workload(table: pd.DataFrame, workload: str) -> Iterator[Counterpart]:
    rows = table[table["workload"] == workload]
    by_key = {(str(row.engine), str(row.interpreter)): row for row in each(rows)}
    hosts = _hosts(rows)
    for known in PUBLISHED:
        for interpreter in hosts:
            yield _counterpart(known, workload, known.engine, interpreter, by_key)
        for form in _forms(known.engine):
            for interpreter in hosts:
                if (form, interpreter) in by_key:
                    yield _counterpart(known, workload, form, interpreter, by_key, REMARKS[form])


def _forms(engine: str) -> tuple[str, ...]:
    """Return the other forms of an engine's C: as published, and whole."""
    return tuple(forms[engine] for forms in (AS_FIRST_PUBLISHED, WHOLE) if engine in forms)


def _hosts(rows: pd.DataFrame) -> list[str]:
    compiled = {*AS_FIRST_PUBLISHED, *REMARKS}
    results = measured(rows)
    return in_order(at_home(results[results["engine"].isin(compiled)]), "interpreter")


def _counterpart(
    known: Published,
    workload: str,
    engine: str,
    interpreter: str,
    by_key: dict[tuple[str, str], Any],
    remark: str = "",
) -> Counterpart:
    row: Any = by_key.get((engine, interpreter))
    planned = row is not None
    return Counterpart(
        row=known,
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
        headings=("published", "engine", "interpreter", "compile", "an image", "an epoch", "speedup", "bits"),
        rows=tuple(_line(one) for one in found),
        notes=tuple(_what_splitting_bought(found)),
    )


def _line(one: Counterpart) -> tuple[Figure, ...]:
    row = one.row
    speedup = PUBLISHED[0].epoch_seconds / row.epoch_seconds
    if one.status == MEASURED:
        compiled, bits, mark = compile_time(one.compile_seconds), one.bits, ""
    else:
        compiled = "not planned" if one.status == UNPLANNED else status_text(one.status)
        bits, mark = one.bits if one.bits == "different" else units.ABSENT, one.status
    return (
        Figure(row.name),
        Figure(one.engine, one.remark),
        Figure(one.interpreter),
        Figure(compiled, f"published {compile_time(row.compile_seconds)}", mark),
        Figure(units.duration(one.image_seconds)),
        Figure(
            approximate(units.duration(one.epoch_seconds), one.extrapolated),
            f"published {units.duration(row.epoch_seconds)}",
        ),
        Figure(units.ratio(one.speedup), f"published {units.ratio(speedup)}"),
        Figure(bits, mark=bits if bits == "different" else ""),
    )


def _what_splitting_bought(found: list[Counterpart]) -> Iterator[str]:
    """Sentences on how much faster today's engine compiles than its other forms, per interpreter that measured both.

    The gain over the published form is due to all changes since. The gain over one function per pass is due to
    splitting, and to the second core that only a split program can use.
    """
    seconds = {(one.engine, one.interpreter): one.compile_seconds for one in found}
    for engine in AS_FIRST_PUBLISHED:
        for interpreter in dict.fromkeys(one.interpreter for one in found):
            split = seconds.get((engine, interpreter), NAN)
            slower = [
                f"{units.times(form_seconds / split)} as fast as {form} ({REMARKS[form]})"
                for form in _forms(engine)
                if split > 0 and (form_seconds := seconds.get((form, interpreter), NAN)) > split
            ]
            if slower:
                yield f"{engine} (split) compiles {' and '.join(slower)} on {interpreter}."
