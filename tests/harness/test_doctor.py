"""`zoomgrad doctor` reports parts whose check raises an error."""

import pytest

from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines.api import Unavailable
from zoomgrad.harness.cli.commands.doctor import state


@pytest.mark.parametrize(
    ("error", "row"),
    [
        (Unavailable("no gcc", "Install it."), ("missing", "no gcc. Install it.")),
        (CorruptData("a byte is wrong"), ("wrong", "a byte is wrong")),
        (ZeroDivisionError("by \x1b[2J"), ("broken", "ZeroDivisionError: by \N{REPLACEMENT CHARACTER}[2J")),
        (SystemExit(3), ("broken", "SystemExit: 3")),
    ],
)
def test_any_error_of_a_check_is_a_row(error, row):
    def look():
        raise error

    assert state("engine x", look) == ("engine x", *row)
