"""`zoomgrad doctor` reports parts whose check raises an error."""

import pytest

from zoomgrad import datasets
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines.api import Unavailable
from zoomgrad.harness.cli.commands.doctor import state
from zoomgrad.harness.run.replies import NoResult


@pytest.mark.parametrize(
    ("error", "row"),
    [
        (Unavailable("no gcc", "Install it."), ("missing", "no gcc. Install it.")),
        (datasets.Unavailable("no data", "Fetch it."), ("missing", "no data. Fetch it.")),
        (NoResult("skipped", "no perf", "Install it."), ("missing", "no perf. Install it.")),
        (CorruptData("a byte is wrong"), ("wrong", "a byte is wrong")),
        (ZeroDivisionError("by \x1b[2J"), ("broken", "ZeroDivisionError: by \N{REPLACEMENT CHARACTER}[2J")),
        (SystemExit(3), ("broken", "SystemExit: 3")),
        (MemoryError(), ("broken", "MemoryError")),
        (RecursionError("deep"), ("broken", "RecursionError: deep")),
    ],
)
def test_any_error_of_a_check_is_a_row(error, row):
    def look():
        raise error

    assert state("engine x", look) == ("engine x", *row)


def test_an_interrupt_is_not_a_row():
    def look():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        state("engine x", look)
