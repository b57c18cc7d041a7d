"""Peers: where engines win and lose, apart from the ladder, with nothing of a stranger's run in a link."""

import pytest

from zoomgrad.reports.charts import charts
from zoomgrad.reports.charts.drawing.svg import drawing
from zoomgrad.reports.measured.contests import contests, grid
from zoomgrad.reports.measured.findings import findings
from zoomgrad.reports.measured.headline import headline
from zoomgrad.reports.measured.table import cells
from zoomgrad.reports.pages import html
from zoomgrad.reports.sections.peers import peers
from zoomgrad.reports.story import story
from zoomgrad.results.record import Cell, EngineFacts, WorkloadFacts

FILE = "engines/peers/models/with_jax.py"
WIDTHS, BATCHES = (16, 1024), (1, 100)
BASE = {
    "clang-O1": 4e-6,
    "rerolled-clang-fast": 1e-6,
    "handwritten": 1e-9,
    "jax": 8e-6,
    "numpy": 3e-5,
}
"""Seconds of a step. The engine is half as fast again as the best peer, except in wide nets and large batches."""


@pytest.fixture
def race(example):
    """Every engine and peer on a map of widths and batches; the `file` of peers may be given."""

    def make(file=FILE, without=()):
        engines = {name: facts for name, facts in example.run.engines.items() if name in BASE}
        engines["handwritten"] = engines["clang-O1"]
        for name in ("jax", "numpy"):
            engines[name] = EngineFacts(idea="a library", strict=False, error_bound=1e-9, peer=file)
        facts = WorkloadFacts(description="synthetic", steps_per_epoch=1_000, samples_per_step=1, batch=1)
        workloads = {
            f"mlp-64x{width}x10{f'-b{batch}' * (batch > 1)}": facts.model_copy(update={"batch": batch})
            for width in WIDTHS
            for batch in BATCHES
        }
        planned = [
            Cell(engine=engine, interpreter="cpython-3.13", workload=workload)
            for workload in workloads
            for engine in BASE
            if engine not in without
        ]
        run = example.run.model_copy(update={"cells": tuple(planned), "engines": engines, "workloads": workloads})
        model = example.measured(Cell(engine="clang-O1", interpreter="cpython-3.13", workload="mnist"), 0)
        records = []
        for one in planned:
            slow = 3 if one.workload == "mlp-64x1024x10-b100" and one.engine == "clang-O1" else 1
            seconds = BASE[one.engine] * slow
            update = {"cell": one, "step_seconds": (seconds,) * 3}
            records += [model.model_copy(update={**update, "block": block}) for block in range(3)]
        return run, tuple(records)

    return make


def batches(run):
    return {name: facts.batch for name, facts in run.workloads.items()}


def test_the_best_strict_engine_meets_the_best_peer_of_its_kind(race):
    """Not the fast engine without the bits, nor the yardstick in C."""
    run, records = race()
    found = contests(cells(run, records), batches(run))
    assert set(found["engine"]) == {"clang-O1"}
    assert set(found["peer"]) == {"jax"}
    assert list(found["ratio"]) == pytest.approx([0.5, 0.5, 0.5, 1.5])
    assert list(zip(found["width"], found["batch"], strict=True)) == [(16, 1), (16, 100), (1024, 1), (1024, 100)]


def test_the_section_says_where_engines_win_and_lose_and_links_to_the_peers(race):
    run, records = race()
    section = peers(cells(run, records), batches(run), "../../..")
    assert section.lead.startswith(
        "The best strict engine is ahead of the best peer on 3 of 4 workloads, behind on mlp-64x1024x10-b100. "
    )
    contest, figures = section.sheets
    assert [row[-1].text for row in contest.rows] == ["ahead", "ahead", "ahead", "behind"]
    assert len(figures.rows) == 2 * 4
    assert {link.path for row in figures.rows for link in row[-1].links} == {f"../../../{FILE}"}


def test_a_range_that_includes_1_is_neither_ahead_nor_behind(race):
    run, records = race()
    records = [
        record.model_copy(update={"step_seconds": tuple(s * (1, 4, 0.5)[record.block] for s in record.step_seconds)})
        if record.cell.engine == "jax"
        else record
        for record in records
    ]
    section = peers(cells(run, records), batches(run))
    assert {row[-1].text for row in section.sheets[0].rows} == {"too close to tell"}
    assert section.lead.startswith("The best strict engine is ahead of the best peer on 0 of 4 workloads. ")


@pytest.mark.parametrize("file", ["javascript:alert(1)", "engines/peers/models/../../../x.py", "<script>"])
def test_a_strangers_file_is_text_and_no_link(race, file):
    run, records = race(file)
    (*_, figures) = peers(cells(run, records), batches(run), "../../..").sheets
    assert not any(row[-1].links for row in figures.rows)
    page = html.page(story(run, records), ())
    assert "<script>window" not in page
    assert 'href="javascript' not in page


def test_peers_are_no_rungs(race):
    run, records = race()
    table = cells(run, records)
    texts = " ".join(findings(table, "mlp-64x16x10"))
    assert "jax" not in texts.partition("Reference lines, which never win: ")[0]
    told = story(run, records)
    assert "jax" not in told.view.headline_rows["engine"].to_list()
    caveats = {rung.engine: rung.caveat for rung in headline(table, "mlp-64x16x10").rows}
    assert caveats["jax"] == "peer, within 1e-09"
    assert story(*race(without=("jax", "numpy"))).peers is None


def test_the_map_shows_every_width_and_batch(race):
    run, records = race()
    rows = grid(contests(cells(run, records), batches(run)))
    drawn = drawing("widths", charts()["widths"], rows)
    assert drawn.title == (
        "The best strict engine beats the best peer in 3 of 4 tiles: "
        "ratios from 0.50 (16 units, batch 1) to 1.50 (1,024 units, batch 100)"
    )
    for text in ("16", "1,024", "100", "0.50", "1.50", "jax", "hidden units"):
        assert f">{text}<" in drawn.svg, text
    assert '<figure id="widths">' in html.render(*race())
    assert "widths" not in html.render(*race(without=("jax", "numpy")))
