"""Verdicts -> their table: what the gate says, with its evidence. The terminal and Markdown lay out the same text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reports.gate import COMPILE_TIME, FAILING, SPEEDUP, Verdict
from reports.markdown import environment
from results import units
from results.alike import unlike_tools
from results.record import Run

HEADINGS = ("verdict", "cell", "what", "reference", "now", "takes", "may take")
QUIET = ("same", "new")
"""Verdicts that nobody has to act on."""


@dataclass(frozen=True)
class Judgement:
    """What the gate says of a run."""

    run: Run
    reference: Run
    passed: bool
    sentence: str
    rows: tuple[tuple[str, ...], ...]
    """What somebody may act on; text, a column a heading."""
    quiet: tuple[tuple[str, ...], ...]
    note: str
    """How the figures are to be read."""


def judgement(run: Run, reference: Run, verdicts: Sequence[Verdict], rerun: str = "") -> Judgement:
    """rerun: what became of suspects, or why they were not measured again."""
    failing = [verdict for verdict in verdicts if verdict.fails]
    counts = Counter(verdict.word for verdict in verdicts)
    counted = ", ".join(f"{number} {word}" for word, number in counts.items())
    sentence = f"{'FAILED' if failing else 'Passed'} against {reference.id}: {counted}. {rerun}".strip()
    if unlike := unlike_tools(run, reference):
        sentence += f" Other tools than the reference's, which alone may change speedups: {'; '.join(unlike)}."
    rows = [(verdict.word, _row(verdict)) for verdict in verdicts]
    note = (
        "“takes”: time beside the baseline's, new over reference, by the median of blocks, with its 95 % interval; "
        "seconds of two runs are never compared. Worse is what lies beyond “may take” with its whole interval; unsure "
        "is what may lie on either side. “may take” is the limit, or this machine's noise floor where that is higher."
    )
    return Judgement(
        run,
        reference,
        not failing,
        sentence,
        tuple(row for word, row in rows if word not in QUIET),
        tuple(row for word, row in rows if word in QUIET),
        note,
    )


def page(told: Judgement) -> str:
    """The judgement as Markdown, for a job's summary."""
    return environment().get_template("gate.md.j2").render(told=told, headings=HEADINGS)


def _row(verdict: Verdict) -> tuple[str, ...]:
    word = verdict.word.upper() if verdict.word in FAILING else verdict.word
    if math.isnan(verdict.change.value):
        return (word, verdict.cell.key, verdict.subject, "", "", verdict.reason, "")
    return (
        word,
        verdict.cell.key,
        verdict.subject,
        _figure(verdict, verdict.then),
        _figure(verdict, verdict.now),
        _taken(verdict),
        f"+{100 * verdict.limit:.0f} %",
    )


def _figure(verdict: Verdict, value: float) -> str:
    if verdict.subject == SPEEDUP:
        return units.ratio(value)
    return f"{units.significant(value, 4)}{' baseline steps' if verdict.subject == COMPILE_TIME else ''}"


def _taken(verdict: Verdict) -> str:
    """The change of a time, in percent: what a user of a slower engine waits longer."""
    change = verdict.change
    if math.isnan(change.low):
        return f"{_percent(change.value)}, no interval: {verdict.reason}"
    if change.low == change.high:
        return _percent(change.value)
    return f"{_percent(change.value)} ({_percent(change.high)} to {_percent(change.low)})"


def _percent(change: float) -> str:
    return f"{100 * (1 / change - 1):+.1f} %"
