"""Verdicts of the gate or of a comparison -> their table, as text. The terminal and Markdown only lay it out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from zoomgrad.reports.text.markdown import environment
from zoomgrad.results import units
from zoomgrad.results.comparability import unlike_tools
from zoomgrad.results.compare import COMPILE_TIME, FAILING, SPEEDUP, STEP, WORDS, Verdict
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


def other_tools(new: Run, old: Run) -> list[str]:
    """Return a sentence if the two runs' interpreters or compilers differ."""
    differences = "; ".join(unlike_tools(new, old))
    return [f"Tools differ from those of {old.id}, which may change speedups: {differences}."] if differences else []


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
