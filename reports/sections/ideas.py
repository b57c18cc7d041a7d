"""View -> what each engine gains over the engine that it builds on: one idea, or one option."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from zoomgrad.reports.measured.headline import by_coverage
from zoomgrad.reports.measured.table import each, graph_rows, in_order, measured
from zoomgrad.reports.text.figures import Bar, Figure, Section, Sheet, bits
from zoomgrad.reports.view import View
from zoomgrad.results import units

NOTABLE = 1.1
"""Gains below this factor are not in the answer."""
_MOST_NAMED = 4


@dataclass(frozen=True)
class Gain:
    """An engine beside the engine that it builds on, on the same interpreter and workload."""

    row: Any
    base: Any

    @property
    def factor(self) -> float:
        """How many times as fast a step is, as the times on the page divide."""
        return float(self.base.step_seconds / self.row.step_seconds)

    @property
    def is_sure(self) -> bool:
        """Whether the two intervals are apart."""
        return bool(self.row.step_seconds_high < self.base.step_seconds_low) or bool(
            self.row.step_seconds_low > self.base.step_seconds_high
        )


def ideas(view: View) -> Section | None:
    """One row for each engine, on the first workload that has it and its base; None if there is no pair."""
    pairs = gains(view)
    if not pairs:
        return None
    longest = max(abs(math.log(gain.factor)) for gain in pairs)
    sheets = []
    for title, is_option in (("", False), ("One option changed", True)):
        rows = tuple(_line(view, gain, longest) for gain in pairs if _is_option(gain) == is_option)
        if rows:
            sheets.append(Sheet(title, 2, ("engine", "over", "gain", "a step", "on", "idea"), rows))
    note = "Gain: a step of “over” divided by the engine's. Grey: intervals overlap."
    answer = _answer(pairs, {*graph_rows(view.table)["engine"]})
    return Section("ideas", "What does each idea gain?", answer, tuple(sheets), (), (note,))


def gains(view: View) -> list[Gain]:
    """Return the gains in the run's order of engines."""
    rows = measured(view.table)
    by_engine: dict[str, Gain] = {}
    for workload in view.workloads(rows):
        here = rows[rows["workload"] == workload]
        for interpreter in by_coverage(here):
            by_name = {str(row.engine): row for row in each(here[here["interpreter"] == interpreter])}
            for name, row in by_name.items():
                base = by_name.get(view.run.engines[name].builds_on) if name in view.run.engines else None
                if base is not None:
                    by_engine.setdefault(name, Gain(row, base))
    return [by_engine[name] for name in in_order(rows, "engine") if name in by_engine]


def _is_option(gain: Gain) -> bool:
    return bool(gain.row.twin == gain.base.engine) and not str(gain.row.engine).endswith("-sparse")


def _answer(pairs: list[Gain], ranked: set[str]) -> str:
    best = sorted(
        (gain for gain in pairs if gain.factor > NOTABLE and gain.is_sure and gain.row.engine in ranked),
        key=lambda gain: -gain.factor,
    )
    named = [f"{gain.row.engine} {units.ratio(gain.factor)} over {gain.base.engine}" for gain in best[:_MOST_NAMED]]
    return f"Largest gains: {', '.join(named)}" if named else "No idea gains more than the noise"


def _line(view: View, gain: Gain, longest: float) -> tuple[Figure, ...]:
    row, length = gain.row, math.log(gain.factor) / longest / 2 if longest else 0.0
    bar = Bar("gain" if length > 0 else "loss", 0.5 + min(length, 0.0), abs(length))
    return (
        Figure(str(row.engine)),
        Figure(str(gain.base.engine)),
        Figure(units.ratio(gain.factor), mark="" if gain.is_sure else "unsure", bars=(bar,)),
        Figure(units.duration(row.step_seconds)),
        Figure(str(row.workload), "" if row.on_reference else str(row.interpreter)),
        Figure(view.run.engines[str(row.engine)].idea, "" if row.bits == "identical" else bits(row).text, "reason"),
    )
