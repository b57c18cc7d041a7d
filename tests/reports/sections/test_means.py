"""Mean speedups over all workloads."""

import pytest

from reports.measured.table import cells
from reports.sections.means import means


def sheets(example):
    found = means(cells(example.run, example.records))
    return {sheet.title.partition(",")[0]: sheet for sheet in found.sheets} if found else {}


def texts(sheet):
    return {row[0].text: [figure.text for figure in row[1:]] for row in sheet.rows}


def test_an_engine_that_lacks_a_workload_has_no_mean(example):
    """`local-grads` fails on xor under CPython 3.13."""
    sheet = sheets(example)["cpython-3.13"]
    assert sheet.title == "cpython-3.13, over mnist, xor"
    assert "local-grads" not in texts(sheet)
    assert sheet.notes == ("Not measured on every workload: local-grads.",)


def test_a_mean_is_between_the_smallest_and_the_largest_speedup(example):
    for row in sheets(example)["cpython-3.13"].rows:
        mean, least, most = (float(figure.text.rstrip("×").replace(",", "")) for figure in row[1:])
        assert least <= mean <= most
        assert row[1].below


@pytest.mark.parametrize("workload", ["mnist", "xor"])
def test_one_workload_has_no_mean(example, workload):
    assert not sheets(example.only(lambda cell: cell.workload == workload))


def test_there_is_no_mean_without_a_result(example):
    assert not sheets(example.interrupted(0))
