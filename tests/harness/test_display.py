"""Text that the terminal shows."""

import io

import pytest
from rich.console import Console

from zoomgrad.harness.cli.display import seconds_text, table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (45.2, "45 s"),
        (200.0, "3 min 20 s"),
        (7500.0, "2 h 5 min"),
    ],
)
def test_waiting_times_are_in_everyday_units(seconds, text):
    assert seconds_text(seconds) == text


def test_a_table_shows_markup_literally():
    console = Console(file=io.StringIO(), width=100)
    console.print(table("facts", ("name", "value"), [("[bold]x[/bold]", "784-[50,10] [/]")]))
    shown = console.file.getvalue()
    assert "[bold]x[/bold]" in shown
    assert "784-[50,10] [/]" in shown
