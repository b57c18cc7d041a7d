"""Table -> where zoomgrad's engines win and lose against other libraries, and all figures of these peers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.contests import contests
from zoomgrad.reports.measured.headline import status_text
from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.measured.table import each
from zoomgrad.reports.text.figures import Figure, Link, Section, Sheet, compile_time, time
from zoomgrad.results import units

EVEN = 0.02
"""A ratio this close to 1 is neither ahead nor behind."""
_FILE = re.compile(r"engines/peers/models/[a-z0-9_]{1,40}\.py")
"""What a link may lead to: a run may come from a stranger."""

_LEAD = (
    "Peers are other libraries that train the same network from the same parameters on the same bytes. They are "
    "context, not rungs of the ladder. A ratio is the time of a step of the fastest strict engine over that of the "
    "fastest peer in float64 on one thread: below 1 the engine is faster. Its range is that of both intervals."
)


def peers(table: pd.DataFrame, batches: Mapping[str, int], code: str = "") -> Section | None:
    """The contest on each workload, then every peer's figures; None if the run has no peers.

    batches: rows of a batch, by workload. code: path from the report to the project's folder, if it may link there.
    """
    rows = table[table["peer"] != ""]
    if rows.empty:
        return None
    found = contests(table, batches)
    sheets = [_contests(found)] if len(found) else []
    return Section("peers", "Peers", f"{verdict(found)}{_LEAD}", (*sheets, _figures(rows, code)))


def verdict(found: pd.DataFrame) -> str:
    """Return on how many workloads the engines are ahead and behind, as a sentence; empty if nothing was compared."""
    if found.empty:
        return ""
    states = [state(row) for row in each(found)]
    names = {key: [str(w) for w, s in zip(found["workload"], states, strict=True) if s == key] for key in set(states)}
    ahead = f"The best strict engine is ahead of the best peer on {states.count('ahead')} of "
    behind = f", behind on {', '.join(names['behind'])}" if "behind" in names else ""
    return f"{ahead}{units.count(len(found), 'workload')}{behind}. "


def state(row: Any) -> str:
    """Return whether the engine is ahead or behind. It is neither if its range includes 1, where it has a range."""
    if abs(row.ratio - 1) < EVEN or row.ratio_low <= 1 <= row.ratio_high:
        return "too close to tell"
    return "ahead" if row.ratio < 1 else "behind"


def _contests(found: pd.DataFrame) -> Sheet:
    lines = tuple(
        (
            Figure(str(row.workload)),
            Figure(f"{row.batch:,}"),
            Figure(str(row.engine), units.duration(row.engine_seconds)),
            Figure(str(row.peer), units.duration(row.peer_seconds)),
            Figure(f"{row.ratio:.2f}", _range(row)),
            Figure(state(row)),
        )
        for row in each(found)
    )
    return Sheet("", 1, ("workload", "batch", "best strict engine", "best peer", "ratio", "the engine is"), lines)


def _range(row: Any) -> str:
    return f"{row.ratio_low:.2f} to {row.ratio_high:.2f}" if row.ratio_low == row.ratio_low else ""


def _figures(rows: pd.DataFrame, code: str) -> Sheet:
    headings = ("workload", "peer", "interpreter", "step", "compile time", "memory", "error", "file")
    lines = tuple(tuple(_line(row, code)) for row in each(rows.sort_values(["workload", "engine"], kind="stable")))
    return Sheet("Figures of all peers", 3, headings, lines)


def _line(row: Any, code: str) -> Iterator[Figure]:
    yield from (Figure(str(row.workload)), Figure(str(row.engine)), Figure(str(row.interpreter)))
    if row.status == MEASURED:
        yield time(row, "step_seconds")
        yield Figure(compile_time(row.compile_seconds))
        yield Figure(units.size(row.peak_bytes))
        yield Figure(units.error(row.worst_error), f"promised: {row.promise}")
    else:
        yield Figure(status_text(str(row.status)), mark=str(row.status))
        yield from [Figure(units.ABSENT)] * 3
    file = str(row.peer)
    links = (Link(file, f"{code}/{file}"),) if code and _FILE.fullmatch(file) else ()
    yield Figure("" if links else file, links=links)
