"""Text that the terminal shows."""

import io

import pytest
from rich.console import Console

from harness.cli.display import end_line, seconds_text, table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.4, "0 s"),
        (45.2, "45 s"),
        (59.6, "1 min 0 s"),
        (200.0, "3 min 20 s"),
        (3599.7, "1 h 0 min"),
        (7500.0, "2 h 5 min"),
        (100_000.0, "27 h 46 min"),
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


def end(**changes):
    return {"loss": 1.0, "epochs": 10, "train_seconds": 2.0, "accuracy": 0.5, "converged": None, **changes}


@pytest.mark.parametrize(("epochs", "text"), [(1, "1 epoch"), (2500, "2,500 epochs")])
def test_a_finished_training_is_one_line(epochs, text):
    more = {"seed": 1337, "steps": 4, "evaluated_on": "6 held out"}
    assert end_line(end(epochs=epochs, **more)) == (
        f"seed 1337: {text}, loss 1, accuracy 50.00% on 6 held out, 2.00 s, 500 ms per step"
    )
