"""A reader who divides two times of a report gets the speedup beside them, whatever the machine's pace was."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zoomgrad.reports.measured.table import cells, each
from zoomgrad.reports.pages import html
from zoomgrad.reports.story import story
from zoomgrad.results import units
from zoomgrad.results.record import BASELINE, Cell
from zoomgrad.results.samples import at_median_pace

UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "×": 1.0}
ROUNDING = 0.015
"""Three figures of three digits are each off by half a percent at most."""


def number(text):
    """The figure at the start of a cell's text; None if there is none."""
    found = re.match(r"≈?\s*([\d,.]+)\s*(ns|µs|ms|s|min|h|×)(?!\w)", text)
    return float(found[1].replace(",", "")) * UNITS[found[2]] if found else None


def assert_divides(base, engine, speedup):
    assert speedup == pytest.approx(base / engine, rel=ROUNDING)


def at(example, paces):
    """The example as a machine of varying pace would have measured it; paces: one for each of its values in turn."""
    drawn = iter(paces)

    def slowed(record):
        if record.status != "measured":
            return record
        pace = [next(drawn) for _ in record.step_seconds]
        seconds = tuple(second * p for second, p in zip(record.step_seconds, pace, strict=True))
        return record.model_copy(update={"step_seconds": seconds, "pace_seconds": tuple(0.01 * p for p in pace)})

    return example.mapped(slowed)


VALUES = 300
"""More than the example has."""


@given(st.lists(st.floats(0.5, 2.0), min_size=VALUES, max_size=VALUES), st.sets(st.integers(0, 2), max_size=2))
@settings(max_examples=20, deadline=None)
def test_the_times_of_a_table_divide(example, paces, lost):
    """Also if the baseline has blocks that the engine lacks, as after an interrupted run."""
    lacking = Cell(engine="tuple", interpreter="cpython-3.13", workload="mnist")
    run = at(example, paces).mapped(lambda one: None if one.cell == lacking and one.block in lost else one)
    table = cells(run.run, run.records)
    for row in each(table[table["speedup"].notna()]):
        of_base = (table["engine"] == BASELINE) & (table["workload"] == row.workload)
        (base,) = each(table[of_base & (table["interpreter"] == row.interpreter)])
        shown = (units.duration(base.step_seconds), units.duration(row.step_seconds))
        assert_divides(*map(number, shown), number(units.ratio(row.speedup)))
        assert not row.speedup < row.speedup_low
    again = cells(run.run, at_median_pace(run.records))
    assert list(again["step_seconds"].dropna()) == list(table["step_seconds"].dropna())


def tables(page):
    """Yield each table of a page: a list of rows, each a list of the texts of its cells."""
    for table in re.findall(r"(?s)<table.*?</table>", page.replace("\u00a0", " ")):
        cells = (re.findall(r"(?s)<t[dh]\b[^>]*>(.*?)</t[dh]>", row) for row in table.split("<tr")[1:])
        yield [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row] for row in cells]


def test_the_times_of_a_finished_page_divide(example):
    """Reads every table of the page that has a column of speedups, as a reader would."""
    paces = [(0.6, 1.7, 1.0, 1.3)[index % 4] * (1 + index % 7 / 10) for index in range(VALUES)]
    run = at(example, paces)
    run = replace(run, records=tuple(one for one in run.records if one.cell.interpreter == "cpython-3.13"))
    divided = 0
    for headings, *rows in tables(html.page(story(run.run, run.records))):
        if "speedup" not in headings:
            continue
        speedup = headings.index("speedup")
        times = [at for at, heading in enumerate(headings) if re.search(r"\b(step|epoch)\b", heading)]
        rows = [row for row in rows if len(row) == len(headings)]
        base = next(row for row in rows if BASELINE in (*row[0].split()[:1], *row[1].split()[:1]))
        for row in rows:
            for column in times:
                assert_divides(number(base[column].strip()), number(row[column].strip()), number(row[speedup].strip()))
                divided += 1
    assert divided >= 8
