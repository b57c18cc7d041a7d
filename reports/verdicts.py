"""Verdicts of the gate or of a comparison -> their table, as text. The terminal and Markdown only lay it out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from zoomgrad.results import units
from zoomgrad.results.comparability import unlike_tools
from zoomgrad.results.compare import COMPILE_TIME, ERROR, FAILING, SPEEDUP, STEP, WORDS, Verdict
from zoomgrad.results.record import Run


@dataclass(frozen=True)
class VerdictTable:
    """What two sides show, as text."""

    title: str
    headings: tuple[str, ...]
    failed: bool
    sentence: str
    rows: tuple[tuple[str, ...], ...]
    """A text for each heading, worst verdict first."""
    notes: tuple[str, ...]
    """What else a reader must know, and how to read the figures."""
    verdicts: tuple[Verdict, ...]

    def markdown(self) -> str:
        """Return the table for the summary of a CI job."""
        from zoomgrad.reports.text.markdown import environment  # late: Jinja takes longer to import than all else here

        return environment().get_template("verdicts.md.j2").render(table=self)

    def content(self) -> dict[str, Any]:
        """Return the table for programs: times in seconds unless a unit is named, ratios as new over old."""
        rows = [
            {name: value for name, value in asdict(replace(verdict, cell=None)).items() if name != "cell"}
            for verdict in self.verdicts
        ]
        return {"title": self.title, "sentence": self.sentence, "failed": self.failed, "verdicts": rows}


def verdict_table(
    title: str, sides: tuple[str, str], verdicts: Sequence[Verdict], notes: Sequence[str], against: str = ""
) -> VerdictTable:
    """Return the table of the verdicts, worst first.

    sides: headings of the old and the new figures. against: name of the old side, if it is not its heading.
    """
    ranked = sorted(verdicts, key=lambda verdict: WORDS.index(verdict.word))
    failing = [verdict for verdict in ranked if verdict.fails]
    counts = Counter(verdict.word for verdict in ranked)
    counted = ", ".join(f"{number} {word}" for word, number in counts.items()) or "nothing was compared"
    return VerdictTable(
        title,
        ("verdict", "cell", "what", *sides, "takes", "may take"),
        bool(failing),
        f"{'FAILED' if failing else 'Passed'} against {against or sides[0]}: {counted}.",
        tuple(map(_row, ranked)),
        tuple(notes),
        tuple(ranked),
    )


OF_RUNS = (
    "“takes” is the change of a time in steps of its run's baseline, new over old: median of blocks and 95 % interval. "
    "The seconds of two runs are never compared. “may take” is the limit. “slower”: the whole interval is beyond it; "
    "equal code is called slower in at most one comparison in a hundred. “unsure”: the interval includes the limit."
)
"""How to read a table of two runs."""


def of_runs(
    title: str, sides: tuple[str, str], new: Run, old: Run, verdicts: Sequence[Verdict], notes: Sequence[str] = ()
) -> VerdictTable:
    """Return the table of two runs. Its notes also say whether their interpreters or compilers differ."""
    notes = list(notes)
    if differences := "; ".join(unlike_tools(new, old)):
        notes.append(f"Tools differ from those of {old.id}, which may change speedups: {differences}.")
    return verdict_table(title, sides, verdicts, [*notes, OF_RUNS], against=old.id)


def in_turns(family: int) -> str:
    """Return how to read a table of sides that took turns. family: number of intervals."""
    return (
        f"“takes” is the change of a time. All {family} intervals hold together, at any time, with "
        f"{100 * (1 - ERROR):g} % probability: equal code is called slower or faster in at most {100 * ERROR:g} of a "
        "hundred comparisons. “unsure” needs more blocks: raise --budget."
    )


def _row(verdict: Verdict) -> tuple[str, ...]:
    word = verdict.word.upper() if verdict.word in FAILING else verdict.word
    if math.isnan(verdict.ratio.value):
        return (word, verdict.subject, verdict.figure, "", "", verdict.reason, "")
    return (
        word,
        verdict.subject,
        verdict.figure,
        _figure(verdict, verdict.then),
        _figure(verdict, verdict.now),
        _taken(verdict),
        f"+{100 * verdict.limit:.0f} %",
    )


def _figure(verdict: Verdict, value: float) -> str:
    if verdict.unit:
        return f"{units.significant(value, 4)} {verdict.unit}"
    if verdict.figure == SPEEDUP:
        return units.ratio(value)
    return units.duration(value) if verdict.figure in (STEP, COMPILE_TIME) else units.significant(value, 4)


def _taken(verdict: Verdict) -> str:
    """Return the change of a time in percent: how much longer a user waits."""
    ratio, because = verdict.ratio, f": {verdict.reason}" if verdict.reason else ""
    if math.isnan(ratio.low) or math.isinf(ratio.high):
        return f"{_percent(ratio.value)}, no interval{because}"
    if ratio.low == ratio.high:
        return _percent(ratio.value)
    return f"{_percent(ratio.value)} ({_percent(ratio.low)} to {_percent(ratio.high)}){because}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
