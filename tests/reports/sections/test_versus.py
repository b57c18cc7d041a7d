"""Each engine's speed on every interpreter over its speed on one of them."""

import pytest

from reports.measured.table import cells
from reports.sections.versus import versus

NEWEST = "cpython-3.13"


@pytest.fixture
def compared(example):
    return example.run.model_copy(update={"versus": NEWEST}), example.records


def test_engines_are_compared_with_themselves_on_the_other_interpreter(compared):
    """In the fixture run, every engine is 1.25 times as slow on CPython 3.11."""
    mnist, xor = versus(cells(*compared), NEWEST).sheets
    assert mnist.headings == ("engine", "cpython-3.11")
    for row in (*mnist.rows, *xor.rows):
        assert row[1].text == "0.800×"
    # `clang-O1` failed there on mnist, and `local-grads` on the newest on xor. PyPy was skipped.
    assert [row[0].text for row in mnist.rows] == [
        *("baseline", "tuple", "local-grads", "rerolled-clang-fast"),
        "geometric mean",
    ]
    assert "local-grads" not in [row[0].text for row in xor.rows]
    assert mnist.rows[0][1].below
    assert mnist.rows[-1][1].below.endswith("(4 engines)")


def test_a_slower_minute_of_both_interpreters_cancels(compared, example):
    run, _ = compared

    def slower(record):
        if record.block != 1 or record.status != "measured":
            return record
        return record.model_copy(update={"step_seconds": tuple(2 * seconds for seconds in record.step_seconds)})

    table = cells(run, example.mapped(slower).records)
    (row,) = table[
        (table["engine"] == "tuple") & (table["interpreter"] == "cpython-3.11") & (table["workload"] == "mnist")
    ].itertuples()
    assert row.speedup_versus_low == pytest.approx(0.8) == row.speedup_versus_high


def test_without_an_interpreter_to_compare_with_there_is_no_section(example):
    assert versus(cells(example.run, example.records), "") is None
    alone = example.run.model_copy(update={"versus": "pypy-3.9"})  # it has no result
    assert versus(cells(alone, example.records), "pypy-3.9") is None
