"""Growth of compile time and memory, fitted to curves with known growth."""

import math

import pytest

from reports.measured.table import cells
from reports.sections.compiling.growth import growth, growths, points
from results.record import Cell, WorkloadFacts


def raced(example, seconds, *, engine="clang-O1", memory=lambda rows: 10**8, sizes=(10**2, 10**4, 10**5, 10**6)):
    """Return the example with one engine on mlp workloads, with compile times `seconds(rows)`, peaks `memory(rows)`."""
    names = {f"mlp-{index + 1}x2x1": rows for index, rows in enumerate(sizes)}
    one = [Cell(engine=engine, interpreter="cpython-3.13", workload=name) for name in names]
    facts = WorkloadFacts(description="synthetic", steps_per_epoch=1_000, samples_per_step=1, batch=1)
    run = example.run.model_copy(
        update={"cells": tuple(one), "workloads": {**example.run.workloads, **dict.fromkeys(names, facts)}}
    )
    mnist = Cell(engine=engine, interpreter="cpython-3.13", workload="mnist")
    records = []
    for cell in one:
        rows = names[cell.workload]
        record = example.measured(
            mnist,
            0,
            phases={"compile": seconds(rows)},
            tape_rows=rows,
            peak_bytes=10**8,
            peak_compiler_bytes=memory(rows),
        )
        records.append(record.model_copy(update={"cell": cell}))
    return type(example)(run, tuple(records))


def fitted(example):
    (only,) = growths(points(cells(example.run, example.records)))
    return only


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.09, 1.11, 2.0])
def test_the_exponent_is_found_and_marked_if_steep(example, exponent):
    found = fitted(raced(example, lambda rows: 1e-6 * rows**exponent))
    assert found.exponent == pytest.approx(exponent)
    assert found.steep == (exponent > 1.1)


def test_small_graphs_do_not_flatten_the_exponent(example):
    """A small graph's time is all constant. A fit that included it would give an exponent of 0.86."""
    found = fitted(raced(example, lambda rows: max(1e-5 * rows, 0.01)))
    assert (found.fitted_points, found.points) == (3, 4)
    assert found.exponent == pytest.approx(1.0)


def test_all_graphs_are_fitted_if_too_few_are_large(example):
    found = fitted(raced(example, lambda rows: 1e-6 * rows**1.5, sizes=(10, 100, 1_000, 20_000, 30_000)))
    assert (found.fitted_points, found.points) == (5, 5)
    assert found.exponent == pytest.approx(1.5)


def test_time_per_row_is_that_of_the_largest_graph(example):
    assert fitted(raced(example, lambda rows: 1e-6 * rows + 1.0)).row_seconds == pytest.approx(2e-6)


def test_memory_per_row_is_the_slope_of_the_larger_of_two_peaks(example):
    found = fitted(raced(example, lambda rows: 1e-6 * rows, memory=lambda rows: 10**8 + 5_900 * rows))
    assert found.row_bytes == pytest.approx(5_900)
    flat = fitted(raced(example, lambda rows: 1e-6 * rows, memory=lambda rows: rows))
    assert flat.row_bytes == pytest.approx(0.0, abs=1e-3)


def test_two_graphs_of_an_engine_show_no_growth(example):
    def change(record):
        return record if record.cell.workload in ("mlp-1x2x1", "mlp-2x2x1") else None

    whole = raced(example, lambda rows: 1e-6 * rows)
    short = whole.mapped(change)
    other = raced(example, lambda rows: 1e-6 * rows, engine="rerolled-clang-fast")
    run = whole.run.model_copy(update={"cells": (*whole.run.cells, *other.run.cells)})
    found = {one.engine: one for one in growths(points(cells(run, (*short.records, *other.records))))}
    assert math.isnan(found["clang-O1"].exponent)
    assert math.isnan(found["clang-O1"].row_bytes)
    assert found["rerolled-clang-fast"].exponent == pytest.approx(1.0)


def test_graphs_of_one_size_show_no_growth(example):
    assert math.isnan(fitted(raced(example, lambda rows: 1.0, sizes=(20_000,) * 4)).exponent)


@pytest.mark.parametrize("engine", ["baseline", "tuple"])
def test_an_engine_without_a_tape_has_no_points(example, engine):
    curve = raced(example, lambda rows: 1e-6 * rows, engine=engine)
    bare = curve.mapped(lambda record: record.model_copy(update={"phases": {}, "tape_rows": 0}))
    assert points(cells(bare.run, bare.records)).empty


def test_there_is_no_section_without_three_graphs(example):
    assert growth(cells(example.run, example.records)) is None
    two = raced(example, lambda rows: 1e-6 * rows, sizes=(10**4, 10**5))
    assert growth(cells(two.run, two.records)) is None


def test_the_sheet_marks_steep_growth_and_the_end_of_a_curve(crowded_table):
    (sheet,) = growth(crowded_table).sheets
    lines = {(row[0].text, row[1].text): dict(zip(sheet.headings, row, strict=True)) for row in sheet.rows}
    steep = lines["clang-O1-whole", "pypy-3.11"]
    assert (steep["exponent"].text, steep["exponent"].mark) == ("1.99", "steep")
    assert steep["exponent"].below == "faster than the graph"
    assert (steep["largest graph"].text, steep["largest graph"].below) == (
        "158,000 rows",
        "mlp-784x256x10 timed out",
    )
    plain = lines["tcc", "cpython-3.14"]
    assert (plain["exponent"].text, plain["exponent"].mark) == ("0.97", "")
    assert plain["graphs"].text == "4 of 6"
    assert plain["compile per row"].text == "11.0 µs"
    assert plain["memory per row"].text == "1.20 kB"
    assert [key for key in lines if key[0] == "tcc-extension"] == [("tcc-extension", "cpython-3.14")]
    assert not any(engine in ("baseline", "replay") for engine, _ in lines)
