"""The answers at a glance: correct for the table, with one column per interpreter that had a choice."""

import pandas as pd

from zoomgrad.reports.sections.glance import at_a_glance

COLUMNS = ("engine", "speedup", "compile_seconds", "sample_seconds", "bits")


def table_of(*rows, interpreter="cpython-3.13"):
    """Return a table of one workload's measured rows: engine, speedup, compile seconds, seconds per sample, bits."""
    made = pd.DataFrame([dict(zip(COLUMNS, row, strict=True)) for row in rows])
    made = made.assign(interpreter=interpreter, workload="mnist", status="measured", promise="identical bits")
    made = made.assign(peer="", twin="")
    made["step_seconds"] = made["sample_seconds"]
    made["epoch_seconds"] = 60_000 * made["sample_seconds"]
    for key in ("engine", "interpreter", "workload"):
        made[key] = pd.Categorical(made[key], categories=list(dict.fromkeys(made[key])), ordered=True)
    return made


def answers(table):
    (sheet,) = at_a_glance(table).sheets
    return sheet.headings, [(row[0].text, *((one.text, one.below) for one in row[1:])) for row in sheet.rows]


RACE = (
    ("baseline", 1.0, 0.0, 1.0, "within 1e-09"),
    ("tcc", 2_000.0, 0.5, 500e-6, "identical"),
    ("clang", 9_000.0, 100.0, 100e-6, "identical"),
    ("rerolled", 50_000.0, 0.6, 20e-6, "identical"),
)


def test_the_answers():
    headings, rows = answers(table_of(*RACE))
    assert headings == ("on mnist", "cpython-3.13")
    assert rows == [
        ("least total time, 1 epoch", ("rerolled", "1.80 s in total")),
        ("least total time, 100 epochs", ("rerolled", "121 s in total")),
        ("least compile time for 1,000× or more", ("tcc", "500 ms, 2,000×")),
        ("least compile time for 10,000× or more", ("rerolled", "600 ms, 50,000×")),
        ("same bits as the reference, if promised", ("all 3 engines", "")),
    ]


def test_the_winner_may_change_with_the_length_of_training():
    _, rows = answers(table_of(RACE[0], ("tcc", 2_000.0, 0.5, 500e-6, "identical"), RACE[2]))
    assert rows[0][1] == ("tcc", "30.5 s in total")
    assert rows[1][1] == ("clang", "11.7 min in total")
    assert rows[3][1] == ("none", "")


def test_engines_with_different_bits_are_named():
    wrong = table_of(*RACE[:3], ("rerolled", 50_000.0, 0.6, 20e-6, "different"))
    assert answers(wrong)[1][-1] == ("same bits as the reference, if promised", ("different: rerolled", ""))


def test_there_is_no_section_for_one_engine():
    assert at_a_glance(table_of(RACE[0])) is None
