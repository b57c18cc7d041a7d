"""Verdicts -> the table that the gate prints, as text. The terminal and Markdown only lay it out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reports.gate.verdict import COMPILE_TIME, FAILING, SPEEDUP, Verdict
from reports.text.markdown import environment
from results import units
from results.comparability import unlike_tools
from results.record import Run

HEADINGS = ("verdict", "cell", "what", "baseline run", "now", "takes", "may take")
QUIET = ("same", "new")
"""Verdicts that need no action."""


@dataclass(frozen=True)
class VerdictTable:
    """The gate's result for a run, as text."""

    run: Run
    baseline_run: Run
    passed: bool
    sentence: str
    rows: tuple[tuple[str, ...], ...]
    """Verdicts that may need action, with one text for each heading."""
    quiet: tuple[tuple[str, ...], ...]
    note: str
    """How to read the figures."""


def verdict_table(run: Run, baseline_run: Run, verdicts: Sequence[Verdict], rerun: str = "") -> VerdictTable:
    """Return the table of a run's verdicts. rerun: a sentence on suspects that were measured again."""
    failing = [verdict for verdict in verdicts if verdict.fails]
    counts = Counter(verdict.word for verdict in verdicts)
    counted = ", ".join(f"{number} {word}" for word, number in counts.items())
    sentence = f"{'FAILED' if failing else 'Passed'} against {baseline_run.id}: {counted}. {rerun}".strip()
    if unlike := unlike_tools(run, baseline_run):
        sentence += f" Tools differ from the baseline run's, which alone may change speedups: {'; '.join(unlike)}."
    rows = [(verdict.word, _row(verdict)) for verdict in verdicts]
    note = (
        "“takes” is the change of a time relative to the baseline's, new run over baseline run: median of blocks and "
        "95 % interval. The gate never compares the seconds of two runs. “may take” is the limit. "
        "“worse” means that the whole interval is beyond it, and that equal "
        "code looks so in at most one run in a hundred; “unsure” that the change may be on either side of it."
    )
    return VerdictTable(
        run,
        baseline_run,
        not failing,
        sentence,
        tuple(row for word, row in rows if word not in QUIET),
        tuple(row for word, row in rows if word in QUIET),
        note,
    )


def page(table: VerdictTable) -> str:
    """Return the table as Markdown, for the summary of a CI job."""
    return environment().get_template("gate.md.j2").render(table=table, headings=HEADINGS)


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
    """Return the change of a time in percent: how much longer a user waits."""
    change = verdict.change
    if math.isnan(change.low):
        return f"{_percent(change.value)}, no interval: {verdict.reason}"
    if change.low == change.high:
        return _percent(change.value)
    return f"{_percent(change.value)} ({_percent(change.high)} to {_percent(change.low)})"


def _percent(change: float) -> str:
    return f"{100 * (1 / change - 1):+.1f} %"
