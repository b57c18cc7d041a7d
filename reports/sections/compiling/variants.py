"""View -> engines beside the engine that they change by a suffix: what changed, in which flags, and what it gains.

A suffix changes one choice: the level of optimisation, the processor, the width of vectors, what may be fused, the
precision, the number of threads, or the form of the code. So each line is an ablation of that choice. `-fast` is the
exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.table import each, in_order, measured
from zoomgrad.reports.text.figures import Figure, Section, Sheet, compile_time, ratio
from zoomgrad.reports.view import View
from zoomgrad.results import units
from zoomgrad.results.record import Cell

_LEAD = (
    "A suffix of an engine's name changes one choice; -fast changes several: -O2, fused multiply-add, sums in any "
    "order, reciprocals, and its own exp, common powers and Adam. "
    "Flags are those that the suffix adds or takes away. A speed is over the engine without the suffix, block by "
    "block: above 1×, the suffix makes it faster. It can differ from the ratio of two medians, and an interval that "
    "contains 1× shows no difference. Bits are compared with the reference's."
)
_HEADINGS = ("engine", "bits", "flags", "vector", "threads", "compile", "compile without it", "step", "speed")


def variants(view: View) -> Section | None:
    """One sheet for each workload, on the reference interpreter; None if nothing was measured beside its twin."""
    rows = measured(view.table)
    rows = rows[rows["on_reference"].astype(bool)]
    shown = rows[rows["speedup_twin"].notna()]
    if shown.empty:
        return None
    flags = flags_by_cell(view)
    sheets = tuple(
        Sheet(workload, 3, _HEADINGS, tuple(_lines(rows[rows["workload"] == workload], flags)))
        for workload in in_order(shown, "workload")
    )
    return Section("variants", "One choice changed", _LEAD, sheets)


def flags_by_cell(view: View) -> Mapping[Cell, tuple[str, ...]]:
    """The flags of each cell's compiler, without search paths, which change no code."""
    return {
        record.cell: tuple(flag for flag in record.compiler_flags if not flag.startswith("-I"))
        for record in view.records
        if record.compiler
    }


def changed_flags(own: Sequence[str], before: Sequence[str]) -> str:
    """The flags of an engine that the other lacks, and those that it lacks: `-O3 instead of -O1`; empty for none."""
    added = " ".join(flag for flag in own if flag not in before)
    removed = " ".join(flag for flag in before if flag not in own)
    if not removed:
        return added
    return f"{added} instead of {removed}" if added else f"without {removed}"


def cell_of(row: Any, engine: str = "") -> Cell:
    """The cell of a table's row, or of another engine on the same interpreter and workload."""
    return Cell(engine=engine or row.engine, interpreter=row.interpreter, workload=row.workload)


def _lines(rows: pd.DataFrame, flags: Mapping[Cell, tuple[str, ...]]) -> Iterator[tuple[Figure, ...]]:
    """One workload's lines, those of one twin together."""
    found = {str(row.engine): row for row in each(rows)}
    twins = dict.fromkeys(str(row.twin) for row in found.values() if row.twin)
    for twin in twins:
        for row in found.values():
            if row.twin == twin and row.speedup_twin == row.speedup_twin:
                yield _line(row, found[twin], flags)


def _line(row: Any, twin: Any, flags: Mapping[Cell, tuple[str, ...]]) -> tuple[Figure, ...]:
    own, before = (flags.get(cell_of(one), ()) for one in (row, twin))
    return (
        Figure(row.engine),
        Figure(row.bits, mark="different" if row.bits == "different" else ""),
        Figure(changed_flags(own, before) or units.ABSENT, mark="code"),
        Figure(_count(row.vector_doubles)),
        Figure(_count(row.threads)),
        Figure(compile_time(row.compile_seconds)),
        Figure(compile_time(twin.compile_seconds)),
        Figure(units.duration(row.step_seconds)),
        ratio(row, "speedup_twin"),
    )


def _count(value: float) -> str:
    return units.ABSENT if value != value else f"{value:.0f}"
