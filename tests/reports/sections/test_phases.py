"""Compile time by phase, and the sizes of compiled programs."""

import math

from reports.measured.table import cells
from reports.sections.compiling.phases import phases
from results.record import Cell

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


def test_a_line_has_every_phase_their_total_and_the_sizes(crowded_table):
    shown = lines(crowded_table)["gcc-O2", "pypy-3.11"]
    assert list(shown) == [
        *("engine", "interpreter", "trace", "lower", "generate", "compile", "load", "total", "ready"),
        *("rows", "source", "object", "compiler's peak"),
    ]
    assert shown["compile"] == "15.3 s"
    assert shown["total"] == "19.2 s"
    assert shown["rows"] == "159,500"
    assert shown["source"] == "7.18 MB"
    assert shown["compiler's peak"] == "758 MB"


def test_the_share_in_loops_is_below_the_rows(example):
    records = [example.measured(CELL, block, tape_rows=9, looped_share=0.99876) for block in range(3)]
    (sheet, *_) = phases(changed(example, *records)).sheets
    rows = sheet.headings.index("rows")
    assert {row[rows].below for row in sheet.rows if row[0].text == "clang-O1"} == {"99.88% in loops"}


def test_only_cells_that_compiled_have_a_line(crowded_table):
    shown = lines(crowded_table)
    assert ("replay", "cpython-3.14") not in shown
    assert ("tcc-extension", "pypy-3.11") not in shown
    assert ("tcc-whole", "pypy-3.11") in shown


def test_every_engine_has_a_line_if_ready_time_was_measured(example):
    """It is the median over the blocks that measured it. An older run keeps its table."""
    assert "ready" not in lines(cells(example.run, example.records))["clang-O1", "cpython-3.13"]
    figures = ((0.3, 0.25), (0.0, 0.0), (0.5, 0.35))

    def with_ready(record):
        if record.status != "measured":
            return record
        wall, processor = figures[record.block]
        return record.model_copy(update={"ready_seconds": wall, "ready_cpu_seconds": processor})

    timed = example.mapped(with_ready)
    table = cells(timed.run, timed.records)
    line = lines(table)["baseline", "cpython-3.13"]
    assert (line["trace"], line["total"], line["ready"]) == ("–", "nothing", "400 ms")
    section = phases(table)
    assert section.title == "Compile time by phase, and ready time"
    (row,) = (row for row in section.sheets[0].rows if [f.text for f in row[:2]] == ["baseline", "cpython-3.13"])
    assert row[section.sheets[0].headings.index("ready")].below == "300 ms CPU"
    assert "imports, data" in section.lead


def test_phases_are_medians_over_the_blocks_that_compiled(example):
    taken = ({"trace": 1.0, "compile": 12.0}, {}, {"trace": 3.0, "compile": 16.0})
    records = [example.measured(CELL, block, phases=phases) for block, phases in enumerate(taken)]
    shown = lines(changed(example, *records))["clang-O1", "cpython-3.13"]
    assert (shown["trace"], shown["compile"], shown["total"]) == ("2.00 s", "14.0 s", "16.0 s")
    assert shown["lower"] == "–"


def test_a_cell_that_only_loaded_has_sizes_but_no_compile_time(example):
    """Its first block compiled, was stopped before it wrote a record, and was repeated."""
    loaded = [example.measured(CELL, block, phases={}, tape_rows=9, object_bytes=700) for block in range(3)]
    table = changed(example, *loaded)
    shown = lines(table)["clang-O1", "cpython-3.13"]
    assert (shown["total"], shown["rows"], shown["object"]) == ("–", "9", "700 B")
    found = table[(table["engine"] == "clang-O1") & (table["interpreter"] == "cpython-3.13")]
    assert math.isnan(found.iloc[0].compile_seconds)


def test_there_is_no_section_if_nothing_was_compiled(example):
    plain = example.only(lambda cell: cell.engine in ("baseline", "tuple"))
    assert phases(cells(plain.run, plain.records)) is None
    assert phases(cells(example.run, ())) is None
