"""Growth of compile time and memory, fitted to curves with known growth."""

import pytest

from zoomgrad.reports.measured.table import cells
from zoomgrad.reports.sections.compiling.growth import growth, growths, points
from zoomgrad.results.record import Cell, WorkloadFacts


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


def test_time_per_row_is_that_of_the_largest_graph(example):
    assert fitted(raced(example, lambda rows: 1e-6 * rows + 1.0)).row_seconds == pytest.approx(2e-6)


def test_memory_per_row_is_the_slope_of_the_larger_of_two_peaks(example):
    found = fitted(raced(example, lambda rows: 1e-6 * rows, memory=lambda rows: 10**8 + 5_900 * rows))
    assert found.row_bytes == pytest.approx(5_900)
    flat = fitted(raced(example, lambda rows: 1e-6 * rows, memory=lambda rows: rows))
    assert flat.row_bytes == pytest.approx(0.0, abs=1e-3)


def test_there_is_no_section_without_three_graphs(example):
    assert growth(cells(example.run, example.records)) is None
    two = raced(example, lambda rows: 1e-6 * rows, sizes=(10**4, 10**5))
    assert growth(cells(two.run, two.records)) is None
