"""Result of a duet -> its table, as text. The terminal and the job summary only lay it out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.text.markdown import escape
from results import units
from results.duet.blocks import Counts, Result
from results.duet.verdicts import Finding, differing_bits, family, findings, within
from results.record import Cell
from results.stats.intervals import MIN_PROCESSES

HEADINGS = ("verdict", "what", "of", "change", "interval", "blocks", "instructions")
_FIGURES = {"step": "step", "compile": "compile time"}


@dataclass(frozen=True)
class DuetTable:
    """What a duet shows, as text."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    """One text for each heading."""
    lines: tuple[str, ...]
    """Cells without figures, differing bits, and how to read the table."""
    failed: bool
    """Whether anything is certainly slower, or HEAD computes other bits or may be the only side that fails."""
    next: str
    """The verdict in a sentence."""


def duet_table(result: Result, strict: Iterable[Cell] | None = None) -> DuetTable:
    """Return the table of a duet. strict: the cells whose engines promise identical bits; None for all."""
    duet = result.duet
    found = findings(duet, result.blocks, [absence.cell for absence in result.absences])
    counts = {one.cell: one for one in result.counts}
    rows = tuple((*_row(one, within(duet, one.figure)), _counted(one, counts)) for one in found)
    promised = set(duet.cells if strict is None else strict)
    different = [cell for cell in differing_bits(result.blocks) if cell in promised]
    broken = [absence for absence in result.absences if absence.side in ("head", "")]
    slower = [one for one in found if one.word == "slower"]
    unknown = [one for one in found if one.word == "unknown"]
    lines = [
        *(f"{one.cell}: no result{f' on {one.side}' if one.side else ''}: {one.reason}" for one in result.absences),
        *(f"{cell}: the two commits compute different losses or parameters" for cell in different),
        *(f"{one.cell}: instructions were not counted: {one.reason}" for one in result.counts if one.reason),
    ]
    if found:
        lines.append(
            f"A change is that of a time, head over base. All {family(duet)} intervals hold together, at any time, "
            f"with {100 * (1 - duet.error):g} % probability: of a hundred duets of equal commits, at most "
            f"{100 * duet.error:g} call anything slower or faster."
        )
    return DuetTable(
        title=f"{duet.base.name} ({duet.base.sha[:12]}) against {duet.head.name} ({duet.head.sha[:12]})",
        rows=rows,
        lines=tuple(lines),
        failed=bool(slower or broken or different),
        next=_sentence(slower, unknown, len(broken), len(different)) if found or broken else "Nothing was measured.",
    )


def _row(one: Finding, limit: float) -> tuple[str, ...]:
    word = (
        f"same within {100 * limit:g} %"
        if one.word == "same"
        else "not known yet"
        if one.word == "unknown"
        else one.word
    )
    if one.word == "unknown":
        word += f": {_to_know(one)}"
    few = math.isinf(one.ratio.high)
    interval = units.ABSENT if few else f"{percent(one.ratio.low)} to {percent(one.ratio.high)}"
    return word, _FIGURES[one.figure], one.subject, percent(one.ratio.value), interval, f"{one.blocks}"


def _to_know(one: Finding) -> str:
    if math.isinf(one.seconds_to_know):
        return "too close to tell"
    # So few blocks say little about how they spread.
    least = "at least " if one.blocks < MIN_PROCESSES else ""
    return f"{least}{units.duration(one.seconds_to_know)} more"


def percent(ratio: float) -> str:
    """A ratio as the change that it is: +4.8 %."""
    return f"{100 * (ratio - 1):+.1f} %"


def _counted(one: Finding, counts: Mapping[Cell, Counts]) -> str:
    counted = counts.get(one.cell) if one.cell and one.figure == "step" else None
    if counted is None or counted.reason:
        return units.ABSENT
    return f"{100 * (counted.head / counted.base - 1):+.2f} %"


def _sentence(slower: Sequence[Finding], unknown: Sequence[Finding], broken: int, different: int) -> str:
    parts = [f"{_FIGURES[one.figure]} of {one.subject} is slower by {percent(one.ratio.value)}" for one in slower[:1]]
    if len(slower) > 1:
        parts.append(f"{units.count(len(slower) - 1, 'other figure')} too")
    if broken:
        parts.append(f"{units.count(broken, 'cell')} without a result")
    if different:
        parts.append(f"{units.count(different, 'cell')} with other bits")
    if parts:
        return f"Failed: {', '.join(parts)}."
    if unknown:
        longest = max(one.seconds_to_know for one in unknown)
        more = "they are too close to tell" if math.isinf(longest) else f"about {units.duration(longest)} more would do"
        return f"Nothing is known to be slower. {units.count(len(unknown), 'figure')} not known yet: {more} (--budget)."
    return "Nothing is slower."


def markdown(table: DuetTable) -> str:
    """The table for a job summary."""
    lines = [f"### {escape(table.title)}", "", escape(table.next), ""]
    if table.rows:
        lines += [f"| {' | '.join(HEADINGS)} |", "|---|---|---|---:|---:|---:|---:|"]
        lines += [f"| {' | '.join(map(escape, row))} |" for row in table.rows]
        lines.append("")
    lines += [f"- {escape(line)}" for line in table.lines]
    return "\n".join([*lines, ""])
