"""Comparison of each speedup with another run's: never of seconds, and only for cells that both measured."""

import re

from reports.measured.table import cells
from reports.pages import html
from reports.sections.comparison import comparison
from reports.story import story
from results.record import BASELINE


def faster(example, engine, factor):
    """Return the run with that engine `factor` times as fast."""

    def change(record):
        if record.cell.engine != engine or record.status != "measured":
            return record
        return record.model_copy(update={"step_seconds": tuple(x / factor for x in record.step_seconds)})

    return example.mapped(change)


def rows_of(here, there):
    section = comparison(cells(here.run, here.records), cells(there.run, there.records), "another")
    return {
        (sheet.title, row[0].text, row[1].text): [(one.text, one.below) for one in row[2:]]
        for sheet in section.sheets
        for row in sheet.rows
    }


def test_an_identical_run_shows_no_change(example):
    rows = rows_of(example, example)
    assert rows
    for here, there, change in rows.values():
        assert here[0] == there[0]
        assert change[0] == "1.00×"


def test_an_engine_that_became_faster_is_marked(example):
    rows = rows_of(faster(example, "tuple", 2.0), example)
    change = {key[1:]: row[2] for key, row in rows.items() if key[0] == "mnist"}
    assert change["tuple", "cpython-3.13"][0] == "2.00× faster"
    back = rows_of(example, faster(example, "tuple", 2.0))
    assert back["mnist", "tuple", "cpython-3.13"][2][0] == "0.500× slower"
    others = [text for (engine, _), (text, _) in change.items() if engine != "tuple"]
    assert set(others) == {"1.00×"}


def test_another_machines_seconds_do_not_matter(example):
    """Everything takes three times as long on the other machine, so no speedup changes."""

    def slower(record):
        return record.model_copy(update={"step_seconds": tuple(3 * x for x in record.step_seconds)})

    rows = rows_of(example, example.mapped(slower))
    assert {change[0] for *_, change in rows.values()} == {"1.00×"}


def test_baseline_has_no_row(example):
    assert not any(engine == BASELINE for _, engine, _ in rows_of(example, example))


def test_runs_without_common_cells_have_no_section(example):
    other = example.only(lambda cell: cell.engine == BASELINE)
    assert comparison(cells(example.run, example.records), cells(other.run, other.records), "another") is None


def test_the_section_is_in_the_report(example):
    told = story(example.run, example.records, None, (example.run, example.records))
    page = html.page(told, [])
    assert re.search(rf'<h2 id="comparison">Compared with {example.run.id}</h2>', page)
    assert "comparison" not in html.page(story(example.run, example.records), [])
