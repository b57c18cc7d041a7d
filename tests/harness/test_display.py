"""Text that the terminal shows."""

import io

import pytest
from rich.console import Console

from harness.cli import display
from harness.cli.display import distribution_lines, end_line, seconds_text, sparkline, table
from tests.harness.runs import measured


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


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""),
        ([3.0], "▁"),
        ([2.0, 2.0, 2.0], "▁▁▁"),
        ([0.0, 7.0], "▁█"),
        ([7.0, 3.0, 0.0], "█▄▁"),
        ([2.0, 2.0 + 1e-9, 2.0], "▁▁▁"),
    ],
)
def test_a_sparkline_spans_from_the_lowest_to_the_highest(values, bars):
    assert sparkline(values) == bars


def test_a_table_shows_markup_literally():
    console = Console(file=io.StringIO(), width=100)
    console.print(table("facts", ("name", "value"), [("[bold]x[/bold]", "784-[50,10] [/]")]))
    shown = console.file.getvalue()
    assert "[bold]x[/bold]" in shown
    assert "784-[50,10] [/]" in shown


def test_a_run_shows_its_first_results_once(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=120)
    same = measured("baseline", 0).step_seconds  # a tie
    compiled = measured("tuple", 0, phases={"trace": 0.25, "compile": 0.5}, tape_rows=9, step_seconds=same)
    with display.RunProgress(console, 4) as progress:
        progress.finished(measured("baseline", 0), 60.0)
        assert "first results" not in console.file.getvalue()
        now[0] = display.FIRST_SECONDS + 1
        for record in (compiled, measured("baseline", 1), measured("tuple", 1)):
            progress.finished(record, 50.0)
    shown = console.file.getvalue()
    assert shown.count("first results") == 1
    rows = [line.split() for line in shown[shown.index("first results") :].splitlines()]
    assert ["baseline", "xor", "cpython-3.13", "nothing", "1.00", "s"] in rows
    assert ["tuple", "xor", "cpython-3.13", "750", "ms", "1.00", "s"] in rows


def end(**changes):
    return {"loss": 1.0, "epochs": 10, "train_seconds": 2.0, "accuracy": 0.5, "converged": None, **changes}


@pytest.mark.parametrize(("epochs", "text"), [(1, "1 epoch"), (2500, "2,500 epochs")])
def test_a_finished_training_is_one_line(epochs, text):
    more = {"seed": 1337, "steps": 4, "evaluated_on": "6 held out", "curve": [(1, 2.0), (4, 1.0)]}
    assert end_line(end(epochs=epochs, **more)) == (
        f"seed 1337: {text}, loss 1, accuracy 50.00% on 6 held out, 2.00 s, 500 ms per step  █▁"
    )


def test_a_distribution_is_shown_as_quartiles():
    lines = distribution_lines([end(loss=loss) for loss in (4.0, 1.0, 3.0, 2.0, 5.0)])
    assert lines == [
        "loss: median 3, quartiles 2 to 4, n = 5",
        "epochs: median 10, quartiles 10 to 10, n = 5",
        "seconds: median 2, quartiles 2 to 2, n = 5",
        "accuracy: median 0.5, quartiles 0.5 to 0.5, n = 5",
    ]


def test_epochs_to_a_tolerance_cover_only_trainings_that_reached_it():
    reached = [end(converged=True, epochs=epochs) for epochs in (10, 20)]
    lines = distribution_lines([*reached, end(converged=False, epochs=1000)])
    assert lines[0] == "2 of 3 within the tolerance"
    assert "epochs: median 15, quartiles 12.5 to 17.5, n = 2" in lines
    assert "seconds: median 2, quartiles 2 to 2, n = 2" in lines
    assert lines[1].endswith("n = 3")  # the loss covers all trainings
