"""Frozen programs beside trainable ones."""

from reports.measured.table import cells
from reports.pages import html, markdown
from reports.sections.compiling.frozen import frozen
from reports.story import story
from results.record import Cell, EngineFacts


def with_frozen(example, *, twin=True):
    """Return the example with `clang-O1-frozen` on mnist, beside its twin or alone."""
    home = Cell(engine="clang-O1", interpreter="cpython-3.13", workload="mnist")
    cell = home.model_copy(update={"engine": "clang-O1-frozen"})
    facts = EngineFacts(idea="weights are constants", builds_on="clang-O1", strict=True, error_bound=None)
    plan = (home, cell) if twin else (cell,)
    workloads = {"mnist": example.run.workloads["mnist"].model_copy(update={"learns": False})}
    named = {**example.run.engines, "clang-O1-frozen": facts}
    run = example.run.model_copy(update={"cells": plan, "engines": named, "workloads": workloads, "blocks": 1})
    records = [
        example.measured(home, 0, phases={"compile": 8.0}, object_bytes=212_000),
        example.measured(home, 0, phases={"compile": 2.0}, object_bytes=119_000).model_copy(update={"cell": cell}),
    ]
    return type(example)(run, tuple(records if twin else records[1:]))


def section_of(example):
    return frozen(cells(example.run, example.records))


def test_a_line_has_a_frozen_cell_beside_its_twin(example):
    (sheet,) = section_of(with_frozen(example)).sheets
    assert sheet.title == "mnist"
    ((engine, interpreter, *figures),) = ([figure.text for figure in row] for row in sheet.rows)
    assert (engine, interpreter) == ("clang-O1", "cpython-3.13")
    assert figures[:2] == ["8.00 s", "2.00 s"]
    assert figures[2] == figures[3]
    assert figures[4:] == ["212 kB", "119 kB"]
    assert len(sheet.headings) == len(sheet.rows[0])


def test_a_frozen_cell_without_its_twin_has_gaps(example):
    ((_, _, *figures),) = section_of(with_frozen(example, twin=False)).sheets[0].rows
    assert [figure.text for figure in figures[::2]] == ["–"] * 3
    assert "–" not in [figure.text for figure in figures[1::2]]


def test_the_section_is_for_runs_with_frozen_cells(example):
    assert section_of(example) is None
    pair = with_frozen(example)
    for page in (html.render, markdown.render):
        assert "Frozen against trainable" in page(pair.run, pair.records)
        assert "Frozen against trainable" not in page(example.run, example.records)


def test_losses_of_forward_passes_are_not_a_curve(example):
    pair = with_frozen(example)
    for run, learns in ((example.run, True), (pair.run, False)):
        told = story(run, example.records)
        assert any(curve.workload == "mnist" for curve in told.curves) == learns
