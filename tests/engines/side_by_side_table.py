"""Figures of blocks -> the table of `side_by_side`: ratios with intervals, and exceeded limits. Pure functions.

A block is `{"base": figures, "head": figures}`, one process each; `side_by_side_worker.timed` makes the figures.
"""

import math
from dataclasses import dataclass
from statistics import median

from results.stats.intervals import Interval, TooFewProcesses, step_time

SIDES = ("base", "head")
FIGURES = {
    "steps": "step_seconds",
    "steps, paced": "paced_step",
    "compile": "compile_seconds",
    "first prepare": "prepare_seconds",
}
"""Column of the table -> key of the figure in a worker's output."""


@dataclass(frozen=True)
class Row:
    """One cell's row of the table. A missing interval means that there is nothing to compare."""

    cell: str
    blocks: int
    intervals: dict[str, Interval]
    """Intervals by column. Instruction counts do not vary, so their interval is a single point."""
    same_bits: bool
    problem: str = ""
    """Why figures are missing."""
    not_counted: str = ""


def ratio(blocks, figure):
    """Median over blocks of HEAD / BASE with its interval.

    The interval is unbounded for fewer than 3 blocks. Returns None if neither side has times.
    """
    base, head = ([block[side][figure] for block in blocks] for side in SIDES)
    if not any(base) or not any(head):  # an engine that compiles nothing
        return Interval(*[math.inf if any(head) else 0.0] * 3) if any(base + head) else None
    ratios = [over / under for over, under in zip(head, base)]
    try:
        return step_time([[each] for each in ratios])
    except TooFewProcesses:
        return Interval(median(ratios), 0.0, math.inf)


def summary(cell, blocks, counts=None, problem=""):
    """Return the row of a cell. counts: side -> instructions per step, or the reason why there are none."""
    intervals = {column: ratio(blocks, figure) for column, figure in FIGURES.items()}
    not_counted = next((each for each in (counts or {}).values() if isinstance(each, str)), "")
    if counts and not not_counted:
        intervals["instructions"] = Interval(*[counts["head"] / counts["base"]] * 3)
    bits = {block[side]["bits"] for block in blocks for side in SIDES}
    known = {column: interval for column, interval in intervals.items() if interval}
    return Row(cell, len(blocks), known, len(bits) < 2, problem, not_counted)


def undecided(row, limits, until):
    """Whether more blocks may help: a bound exceeds its limit, the median does not, and they are far apart."""
    judged = [(limits[column], interval) for column, interval in row.intervals.items() if column in limits]
    return any(each.value <= limit < each.high and each.high - each.value > until for limit, each in judged)


def failures(row, limits):
    """Return one sentence for each failure of a cell."""
    found = [row.problem or "no block was measured"] if row.problem or not row.blocks else []
    for column, interval in row.intervals.items():
        if interval.high > limits.get(column, math.inf):
            found.append(f"{column}: the bound {interval.high:.3f} exceeds {limits[column]:g}")
    return found + ["bits differ"] * (not row.same_bits)


def table(rows, limits):
    """The report in Markdown."""
    columns = [*FIGURES, "instructions"]
    lines = [f"| cell | blocks | {' | '.join(columns)} | bits |", f"|---|---:|{'---:|' * len(columns)}---|"]
    for row in rows:
        shown = [_shown(row.intervals.get(column)) for column in columns]
        bits = ("identical" if row.same_bits else "**differ**") if row.blocks else "–"
        lines.append(f"| {row.cell} | {row.blocks} | {' | '.join(shown)} | {bits} |")
    lines.append("")
    lines += [f"- {row.cell}: {failure}" for row in rows for failure in failures(row, limits)]
    lines += [f"- {row.cell}: instructions are not countable: {row.not_counted}" for row in rows if row.not_counted]
    worst = []
    for column, limit in limits.items():
        bound, cell = max(
            ((row.intervals[column].high, row.cell) for row in rows if column in row.intervals),
            default=(math.nan, "no cell"),
        )
        worst.append(f"{column} {bound:.3f} ({cell}; limit {limit:g})")
    same = sum(row.same_bits and row.blocks > 0 for row in rows)
    lines += ["", f"Worst upper bounds: {', '.join(worst)}. Bits identical in {same} of {len(rows)} cells."]
    return "\n".join(lines)


def _shown(interval):
    if interval is None:
        return "–"
    if interval.low == interval.high:
        return f"{interval.value:.4f}"
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
