"""A reader who divides two times of a report gets the speedup beside them, whatever the machine's pace was."""

import re

import pytest

from zoomgrad.reports.pages import html
from zoomgrad.reports.story import story
from zoomgrad.results.record import BASELINE

UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "×": 1.0}
ROUNDING = 0.015
"""Three figures of three digits are each off by half a percent at most."""


def number(text):
    """The figure at the start of a cell's text."""
    found = re.match(r"≈?\s*([\d,.]+)\s*(ns|µs|ms|s|min|h|×)(?!\w)", text)
    return float(found[1].replace(",", "")) * UNITS[found[2]]


def at_varying_pace(record):
    """The record as a machine whose pace differs from value to value would have measured it; later blocks are slow."""
    pace = [(0.6, 1.7, 1.0, 1.3)[(len(record.cell.engine) + at) % 4] for at in range(3)]
    seconds = tuple(second * p * (1 + record.block) for second, p in zip(record.step_seconds, pace, strict=True))
    return record.model_copy(update={"step_seconds": seconds, "pace_seconds": tuple(0.01 * p for p in pace)})


def interrupted(example):
    """A run whose last block ended after the baseline."""
    here = example.only(lambda cell: cell.interpreter == "cpython-3.13" and cell.engine != "local-grads")
    return here.mapped(lambda one: None if one.block == 2 and one.cell.engine != BASELINE else at_varying_pace(one))


def tables(page):
    """Yield each table of a page: a list of rows, each a list of the texts of its cells."""
    for table in re.findall(r"(?s)<table.*?</table>", page.replace("\u00a0", " ")):
        cells = (re.findall(r"(?s)<t[dh]\b[^>]*>(.*?)</t[dh]>", row) for row in table.split("<tr")[1:])
        yield [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row] for row in cells]


def test_the_times_of_a_finished_page_divide(example):
    """Reads every table of the page that has a column of speedups, as a reader would."""
    run, divided = interrupted(example), 0
    for headings, *rows in tables(html.page(story(run.run, run.records))):
        if "speedup" not in headings:
            continue
        speedup = headings.index("speedup")
        times = [at for at, heading in enumerate(headings) if re.search(r"\b(step|epoch)\b", heading)]
        rows = [row for row in rows if len(row) == len(headings)]
        base = next(row for row in rows if BASELINE in (*row[0].split()[:1], *row[1].split()[:1]))
        for row in rows:
            for column in times:
                expected = number(base[column]) / number(row[column])
                assert number(row[speedup]) == pytest.approx(expected, rel=ROUNDING), row
                divided += 1
    assert divided >= 8
