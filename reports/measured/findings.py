"""Table -> the run's findings, as sentences. A sentence that is not true of the data is left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.headline import claim, compiled
from zoomgrad.reports.measured.outcome import IDENTICAL, MISSING
from zoomgrad.reports.measured.table import ON_THREADS, contenders, largest, measured, smallest
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE
from zoomgrad.results.stats.intervals import MIN_PROCESSES

_PHRASES = {
    "skipped": "skipped",
    "failed": "failed",
    "timed-out": "timed out",
    MISSING: "never run",
}


def findings(table: pd.DataFrame, workload: str | None) -> list[str]:
    """Return sentences on the speed on the headline workload, on how much was measured, and on correctness.

    workload: None if the plan is empty.
    """
    if workload is None:
        return ["The plan of this run is empty: there is nothing to report."]
    return [*_speed(table, workload), _coverage(table), *_correctness(table)]


def faster(row: Any) -> str:
    """Return `local-grads is 3.4 times as fast as baseline on cpython-3.13` for a row with a speedup."""
    return f"{row.engine} is {units.times(row.speedup)} as fast as {BASELINE} on {row.interpreter}"


def best(rows: pd.DataFrame) -> Any:
    """Return the contender with the best speedup, or None: on the reference CPython if it has one, else anywhere.

    The best is the largest whose interval is above 1, or which has no interval. If none is, the largest of all.
    """
    rows = contenders(measured(rows))
    rows = rows[rows["speedup"].notna()]
    at_home = rows[rows["on_reference"].astype(bool)]
    rows = rows if at_home.empty else at_home
    clear = rows[~(rows["speedup_low"] <= 1)]
    return None if rows.empty else largest(rows if clear.empty else clear, "speedup")


def _speed(table: pd.DataFrame, workload: str) -> Iterator[str]:
    rows = measured(table[table["workload"] == workload])
    if rows.empty:
        return
    found, winner = claim(table, workload), best(rows)
    if found:
        yield f"{found.text}."
    if winner is None:
        yield f"On {workload} no engine was measured alongside {BASELINE} on any interpreter, so there is no speedup."
    elif winner.speedup_low <= 1:
        yield f"On {workload} no engine is measurably faster than {BASELINE} on {winner.interpreter}."
    else:
        yield f"On {workload}, {faster(winner)} ({_interval(winner)}){_too_close(winner, contenders(rows))}."
    if found:
        yield from _reference_lines(rows, found.row)


def _reference_lines(rows: pd.DataFrame, winner: Any) -> Iterator[str]:
    """Name the fastest of each kind of row that can't win, on the winner's interpreter."""
    rows = rows[(rows["interpreter"] == winner.interpreter) & (rows["engine"] != BASELINE)]
    rows = rows.drop(contenders(rows).index)
    rows = rows[rows["epoch_seconds"].notna() & rows["compile_seconds"].notna()]
    is_peer = rows["peer"] != ""
    by_hand = rows["engine"].astype(str).str.startswith("handwritten")
    by_threads = rows["engine"].astype(str).str.contains(ON_THREADS)
    kinds = (
        ("C written by hand for this one network", rows[by_hand]),
        ("another library", rows[is_peer]),
        ("without the promise of identical bits", rows[~is_peer & ~by_hand & (rows["promise"] != IDENTICAL)]),
        ("on several threads", rows[~is_peer & ~by_hand & by_threads & (rows["promise"] == IDENTICAL)]),
    )
    said = []
    for kind, of_kind in kinds:
        if len(of_kind):
            row = smallest(of_kind, "epoch_seconds")
            times = f"{compiled(row.compile_seconds)} and {units.duration(row.epoch_seconds)}"
            said.append(f"{row.engine} ({kind}), {times}")
    if said:
        yield f"Reference lines, which never win: {'; '.join(said)}."


def _too_close(winner: Any, rows: pd.DataFrame) -> str:
    """Name the engines that may be as fast as the winner, on its interpreter."""
    rows = rows[(rows["interpreter"] == winner.interpreter) & (rows["engine"] != BASELINE) & rows["speedup"].notna()]
    # An interval that is missing separates nothing.
    rivals = rows[(rows.index != winner.name) & ~(rows["speedup_high"] < winner.speedup_low)]
    return f"; {_listed(rivals['engine'])} may be as fast" if len(rivals) else ""


def _listed(names: Iterable[object]) -> str:
    """The first names, and how many more there are."""
    first, *others = map(str, names)
    if not others:
        return first
    return f"{first} and {others[0]}" if len(others) == 1 else f"{first} and {len(others)} others"


def _interval(row: Any) -> str:
    if math.isnan(row.speedup_low):
        return f"no interval: fewer than {MIN_PROCESSES} processes"
    return f"95 % interval {units.ratio_interval(row.speedup_low, row.speedup_high)}"


def _coverage(table: pd.DataFrame) -> str:
    counts = table["status"].value_counts()
    rest = [f"{counts[status]} {words}" for status, words in _PHRASES.items() if status in counts]
    done = len(measured(table))
    if len(table) == 1:
        text = f"The only cell was {'' if done else 'not '}measured"
    else:
        share = "All" if done == len(table) else f"{done or 'None'} of"
        text = f"{share} {len(table)} cells were measured"
    return f"{text}{': ' if rest else ''}{', '.join(rest)}."


def _correctness(table: pd.DataFrame) -> Iterator[str]:
    different = int((table["bits"] == "different").sum())
    if different:
        verb, their = ("differs", "its time is") if different == 1 else ("differ", "their times are")
        yield f"{units.count(different, 'cell')} {verb} from the reference by more than promised: {their} not shown."
    if not measured(table).empty and not different:
        yield "Every measured cell computes what its engine promises."
