"""Headline workload's rows -> the best engines by length of training and by compile time, and whether bits agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.headline import by_coverage
from zoomgrad.reports.measured.outcome import IDENTICAL
from zoomgrad.reports.measured.table import measured, racing, smallest
from zoomgrad.reports.sections.break_even import Cost, costs, samples_an_epoch
from zoomgrad.reports.text.figures import Figure, Section, Sheet, compile_time
from zoomgrad.results import units

EPOCHS = (1, 100)
SPEEDUPS = (1_000, 10_000)
"""Over `baseline` on the same interpreter."""

_LEAD = (
    "Total time is compile time plus training time; a speedup is over baseline on the same interpreter. Figures are "
    "medians, so engines that are close may change places in another run. Handwritten C is a reference line, not an "
    "answer."
)


def at_a_glance(rows: pd.DataFrame) -> Section | None:
    """One workload's answers, one column per interpreter with two measured engines or more; None if there is none."""
    interpreters = [name for name in by_coverage(rows) if len(_on(rows, name)) > 1]
    if not interpreters:
        return None
    epoch = samples_an_epoch(rows)
    questions: list[tuple[str, Callable[[str], Figure]]] = [
        *((f"least total time, {units.count(n, 'epoch')}", _after(rows, n * epoch)) for n in EPOCHS),
        *((f"least compile time for {speedup:,}× or more", _at_least(rows, speedup)) for speedup in SPEEDUPS),
        ("same bits as the reference, if promised", _bits(rows)),
    ]
    headings = (f"on {rows['workload'].iloc[0]}", *interpreters)
    sheet = Sheet("", 1, headings, tuple(_row(*one, interpreters) for one in questions))
    return Section("glance", "At a glance", _LEAD, (sheet,))


def _row(question: str, answer: Callable[[str], Figure], interpreters: Sequence[str]) -> tuple[Figure, ...]:
    return (Figure(question), *map(answer, interpreters))


def _on(rows: pd.DataFrame, interpreter: str) -> pd.DataFrame:
    return measured(rows[rows["interpreter"] == interpreter])


def _after(rows: pd.DataFrame, images: float) -> Callable[[str], Figure]:
    """The engine with the least total time after `images` images."""

    def answer(interpreter: str) -> Figure:
        found = costs(racing(rows), interpreter)
        if not found or not images > 0:
            return Figure(units.ABSENT)
        best = min(found, key=lambda cost: cost.total_seconds(images))
        return Figure(_named(best), f"{units.duration(best.total_seconds(images))} in total")

    return answer


def _named(cost: Cost) -> str:
    return f"{cost.engine} ({cost.caveat})" if cost.caveat else cost.engine


def _at_least(rows: pd.DataFrame, speedup: float) -> Callable[[str], Figure]:
    """The engine that compiles fastest among those at least `speedup` times as fast as baseline."""

    def answer(interpreter: str) -> Figure:
        fast = _on(racing(rows), interpreter)
        fast = fast[(fast["speedup"] >= speedup) & fast["compile_seconds"].notna()]
        if fast.empty:
            return Figure("none")
        best: Any = smallest(fast, "compile_seconds")
        return Figure(str(best.engine), f"{compile_time(best.compile_seconds)}, {units.ratio(best.speedup)}")

    return answer


def _bits(rows: pd.DataFrame) -> Callable[[str], Figure]:
    """Whether every engine that promises identical bits produced them."""

    def answer(interpreter: str) -> Figure:
        here = rows[(rows["interpreter"] == interpreter) & (rows["promise"] == IDENTICAL)]
        wrong = here[here["bits"] == "different"]
        if not wrong.empty:
            return Figure(f"different: {', '.join(map(str, wrong['engine']))}", mark="different")
        checked = here[here["bits"] == "identical"]
        if checked.empty:
            return Figure(units.ABSENT)
        return Figure(f"all {units.count(len(checked), 'engine')}")

    return answer
