"""View -> the README's five rows."""

from __future__ import annotations

from zoomgrad.reports.measured.headline import claim
from zoomgrad.reports.measured.table import each, ladder, measured
from zoomgrad.reports.sections.published import BATCHES, compile_and_epoch
from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.reports.view import View
from zoomgrad.results.record import BASELINE

SUMMARY = {
    BASELINE: "micrograd as published",
    "clang-O1-published": "the C of the post, compiled by Clang -O1",
    "clang-O1": "the same graph as C in small functions",
    "handwritten-sparse": "reference line: C by hand for this one network",
    "rerolled-clang-sparse": "C over loops recovered from the scalar graph",
}
"""The README's rows: engine -> description."""


def summary(view: View) -> Section | None:
    """A few engines on the reference CPython, with an update after 1,000 images; None if none of them was measured."""
    rows = ladder(measured(view.table))
    rows = rows[(rows["workload"] == BATCHES) & rows["on_reference"].astype(bool)]
    found = {str(row.engine): row for row in each(rows)}
    lines = tuple(
        (Figure(engine), Figure(what), *compile_and_epoch(found[engine]))
        for engine, what in SUMMARY.items()
        if engine in found
    )
    if not lines:
        return None
    headline = claim(view.table, BATCHES)
    note = (
        f"An epoch of 60,000 MNIST images, an update every 1,000, {view.run.reference_interpreter}; medians, with 95 % "
        "intervals, corrected to the run's median pace. ≈: extrapolated from the steps run."
    )
    return Section(
        "summary",
        headline.text if headline else "MNIST",
        note,
        (Sheet("", 2, ("engine", "what runs", "compile", "an epoch"), lines),),
    )
