"""Compile time by phase, and the sizes of compiled programs."""

from zoomgrad.reports.measured.table import cells
from zoomgrad.reports.sections.compiling.phases import phases
from zoomgrad.results.record import Cell

CELL = Cell(engine="clang-O1", interpreter="cpython-3.13", workload="mnist")


def changed(example, *records):
    """Return the example's table with other records of `CELL`."""
    changed = example.with_records(CELL, *records)
    return cells(changed.run, changed.records)


def lines(table, workload="mnist"):
    """Return the lines of a workload's sheet by engine and interpreter."""
    section = phases(table)
    sheet = next(sheet for sheet in section.sheets if sheet.title == workload)
    return {
        (row[0].text, row[1].text): dict(zip(sheet.headings, (figure.text for figure in row), strict=True))
        for row in sheet.rows
    }


def test_the_share_in_loops_is_below_the_rows(example):
    records = [example.measured(CELL, block, tape_rows=9, looped_share=0.99876) for block in range(3)]
    (sheet, *_) = phases(changed(example, *records)).sheets
    rows = sheet.headings.index("rows")
    assert {row[rows].below for row in sheet.rows if row[0].text == "clang-O1"} == {"99.88% in loops"}


def test_phases_are_medians_over_the_blocks_that_compiled(example):
    taken = ({"trace": 1.0, "compile": 12.0}, {}, {"trace": 3.0, "compile": 16.0})
    records = [example.measured(CELL, block, phases=phases) for block, phases in enumerate(taken)]
    shown = lines(changed(example, *records))["clang-O1", "cpython-3.13"]
    assert (shown["trace"], shown["compile"], shown["total"]) == ("2.00 s", "14.0 s", "16.0 s")
    assert shown["lower"] == "–"


def test_there_is_no_section_if_nothing_was_compiled(example):
    plain = example.only(lambda cell: cell.engine in ("baseline", "tuple"))
    assert phases(cells(plain.run, plain.records)) is None
    assert phases(cells(example.run, ())) is None
