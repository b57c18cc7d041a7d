"""View -> the README's five rows and the tables of docs/results.md: MNIST, and what each choice gains there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from reports.measured.headline import claim
from reports.measured.table import each, in_order, ladder, measured, without_choices
from reports.sections.compiling.variants import cell_of, changed_flags, flags_by_cell
from reports.sections.published import AS_FIRST_PUBLISHED, PUBLISHED
from reports.text.figures import Figure, Section, Sheet, approximate, compile_time, ratio, time
from reports.text.native_notes import noted
from reports.view import View
from results import units
from results.record import BASELINE, Cell

BATCHES, IMAGES = "mnist-b1000", "mnist"
"""Workloads with an update after 1,000 images, as published, and after each image."""

SUMMARY = {
    BASELINE: "micrograd as published",
    "clang-O1-published": "the C of the post, compiled by Clang -O1",
    "clang-O1": "the same graph as C in small functions",
    "handwritten-sparse": "reference line: C by hand for this one network",
    "rerolled-clang-sparse": "C over loops recovered from the scalar graph",
}
"""The README's rows: engine -> description."""

_LEAD = (
    "Medians over processes, with the 95 % interval of an epoch or a speedup in brackets. Published figures are from "
    "another machine: compare rankings, not seconds. Speedups are over baseline on the same interpreter. ≈: "
    "extrapolated from the steps run."
)


def results(view: View) -> Section | None:
    """One sheet per workload of the published model; None if neither was measured."""
    sheets = tuple(
        Sheet(title, 1, headings, tuple(rows))
        for title, headings, rows in (_trade_off(view.table), _images(view.table))
        if headings
    )
    return noted(Section("results", "MNIST", _LEAD, sheets), view.run.engines) if sheets else None


def summary(view: View) -> Section | None:
    """A few engines on the reference CPython, with an update after 1,000 images; None if none of them was measured."""
    rows = _rows(view.table, BATCHES)
    found = {str(row.engine): row for row in each(rows[rows["on_reference"].astype(bool)])}
    lines = tuple(
        (Figure(engine), Figure(what), *_compile_and_epoch(found[engine]))
        for engine, what in SUMMARY.items()
        if engine in found
    )
    if not lines:
        return None
    headline = claim(view.table, BATCHES)
    note = (
        f"An epoch of 60,000 MNIST images, an update every 1,000, {view.run.reference_interpreter}; medians, with 95 % "
        "intervals. ≈: extrapolated from the steps run."
    )
    return Section(
        "summary",
        headline.text if headline else "MNIST",
        note,
        (Sheet("", 2, ("engine", "what runs", "compile", "an epoch"), lines),),
    )


def ablation(view: View) -> Section | None:
    """What each flag, width, precision and number of threads gains on MNIST; None if no such engine was measured.

    One line for each engine with one choice changed, in the order of the twins; each workload has its time for an
    image, and its speed over the twin, which is the engine without the suffix.
    """
    rows = measured(view.table)
    rows = rows[rows["on_reference"].astype(bool) & rows["workload"].isin([IMAGES, BATCHES])]
    plain = without_choices(rows)
    changed = rows.drop(plain.index)
    by_key = {(str(row.engine), str(row.workload)): row for row in each(rows)}
    twins = [name for name in in_order(plain, "engine") if (changed["twin"] == name).any()]
    flags = flags_by_cell(view)
    lines = [
        _choice(name, twin, by_key, flags)
        for twin in twins
        for name in (twin, *in_order(changed[changed["twin"] == twin], "engine"))
    ]
    if not lines:
        return None
    headings = ("engine", "flags", "compile", *(f"{name}: {what}" for name in (IMAGES, BATCHES) for what in _CHOICE))
    note = (
        f"Medians on {view.run.reference_interpreter}. A speed is over the engine without the suffix, block by block, "
        "with its 95 % interval; above 1×, the suffix makes it faster. It can differ from the ratio of two medians. An "
        "interval that contains 1× shows no difference."
    )
    return Section("ablation", "One choice changed", note, (Sheet("", 1, headings, tuple(lines)),))


_CHOICE = ("image", "speed")


def _choice(
    name: str, twin: str, by_key: Mapping[tuple[str, str], Any], flags: Mapping[Cell, tuple[str, ...]]
) -> tuple[Figure, ...]:
    """The line of an engine that was measured on a workload on which its twin was measured too."""
    found = [by_key.get((name, workload)) for workload in (IMAGES, BATCHES)]
    first = next(row for row in found if row is not None and (twin, str(row.workload)) in by_key)
    own, before = (flags.get(cell_of(first, engine), ()) for engine in (name, twin))
    return (
        Figure(name),
        Figure(" ".join(own) if name == twin else changed_flags(own, before) or units.ABSENT),
        _compile(first),
        *(figure for row in found for figure in _gain(row, name == twin)),
    )


def _gain(row: Any, is_twin: bool) -> tuple[Figure, Figure]:
    if row is None:
        return Figure(units.ABSENT), Figure(units.ABSENT)
    return Figure(units.duration(row.sample_seconds)), Figure("") if is_twin else ratio(row, "speedup_twin")


Made = tuple[str, tuple[str, ...], Iterable[tuple[Figure, ...]]]


def _trade_off(table: pd.DataFrame) -> Made:
    rows = _rows(table, BATCHES)
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
                *(figure for host in hosts for figure in _compile_and_epoch(by_host.get(host))),
            )

    sides = ("published", *hosts)
    headings = ("engine", *(f"{side}: {what}" for side in sides for what in _PAIR)) if hosts else ()
    return "an update after 1,000 images, an epoch of 60,000", headings, made()


_PAIR = ("compile", "epoch")


def _images(table: pd.DataFrame) -> Made:
    rows = _rows(table, IMAGES)
    hosts = in_order(rows, "interpreter")

    def made() -> Iterator[tuple[Figure, ...]]:
        for engine, by_host in _by_engine(rows):
            yield (Figure(engine), *(figure for host in hosts for figure in _image(by_host.get(host))))

    headings = ("engine", *(f"{host}: {what}" for host in hosts for what in ("compile", "image", "speedup")))
    return "an update after each image", headings if hosts else (), made()


def _rows(table: pd.DataFrame, workload: str) -> pd.DataFrame:
    results = ladder(measured(table))
    return results[results["workload"] == workload]


def _there(rows: pd.DataFrame, engine: str) -> bool:
    return bool((rows["engine"] == engine).any())


def _by_engine(rows: pd.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    """Group rows by engine, slowest first on the reference CPython."""
    found: dict[str, dict[str, Any]] = {}
    for row in each(rows.sort_values(["on_reference", "step_seconds"], ascending=[False, False])):
        found.setdefault(str(row.engine), {})[str(row.interpreter)] = row
    yield from found.items()


def _compile_and_epoch(row: Any) -> tuple[Figure, Figure]:
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
