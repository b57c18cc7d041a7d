"""Every chart draws every run, says what it found, and is the same bytes each time."""

import re
import xml.etree.ElementTree as ET

import pytest

from reports.charts import charts, style
from reports.svg import drawing, standalone
from reports.table import cells

NAMES = ["compile_against_epoch", "ladder", "heatmap"]
TITLES = {
    "compile_against_epoch": "rerolled-clang-fast on cpython-3.13 compiles in 210 ms "
    "and has an epoch of 251 ms, the shortest",
    "ladder": "rerolled-clang-fast is 340,000 times as fast as baseline on cpython-3.13",
    "heatmap": "From 1.79 s a step (baseline on cpython-3.11) to 4.18 µs (rerolled-clang-fast on cpython-3.13)",
}


def rows(example, workload="mnist"):
    table = cells(example.run, example.records)
    return table[table["workload"] == workload]


def test_charts_are_found_in_their_folder():
    assert list(charts()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_title_states_the_finding(example, name):
    assert charts()[name].title(rows(example)) == TITLES[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_the_same_bytes_each_time(example, name):
    first, second = (drawing(name, charts()[name], rows(example)).svg for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_accessible_text_in_the_pages_colours(example, name):
    svg = str(drawing(name, charts()[name], rows(example)).svg)
    root = ET.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "local-grads" in texts
    assert root.get("role") == "img"
    assert "#000000" not in svg
    assert "currentColor" in svg


def test_ids_of_charts_on_one_page_do_not_meet(example):
    ids = [re.findall(r'\bid="([^"]+)"', drawing(name, charts()[name], rows(example)).svg) for name in NAMES]
    flat = [one for of_chart in ids for one in of_chart]
    assert len(flat) == len(set(flat))


def test_every_reference_in_a_chart_has_its_target(example):
    for name in NAMES:
        svg = drawing(name, charts()[name], rows(example)).svg
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
        assert used <= set(re.findall(r'\bid="([^"]+)"', svg))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("state", ["nothing measured", "one cell", "xor"])
def test_a_chart_draws_whatever_there_is(example, name, state):
    table = {
        "nothing measured": lambda: rows(example.interrupted(0)),
        "one cell": lambda: rows(example.only(lambda cell: cell == example.run.cells[1])),
        "xor": lambda: rows(example, "xor"),
    }[state]()
    assert "</svg>" in drawing(name, charts()[name], table).svg


def test_published_points_stand_only_on_their_workload(example):
    chart = charts()["compile_against_epoch"]
    assert "another machine" in chart.caption(rows(example))
    assert "another machine" not in chart.caption(rows(example, "xor"))


def test_the_heatmap_names_what_is_missing(example):
    svg = drawing("heatmap", charts()["heatmap"], rows(example)).svg
    assert svg.count(">skipped<") == 5
    assert svg.count(">failed<") == 1


def test_an_engine_keeps_its_colour_from_table_to_table(example):
    assert style.engine_colour(rows(example), "tuple") == style.engine_colour(rows(example, "xor"), "tuple")


def test_a_name_is_never_a_formula_or_a_tag(example):
    odd = "a$b$<i>&"
    record = next(record for record in example.records if record.cell.key == "tuple/cpython-3.13/mnist")
    cell = record.cell.model_copy(update={"engine": odd})
    run = example.run.model_copy(update={"cells": (cell,)})
    table = cells(run, [record.model_copy(update={"cell": cell})])
    for name, chart in charts().items():
        svg = drawing(name, chart, table).svg
        assert "a$b$&lt;i&gt;&amp;" in svg
        assert "<i>" not in svg


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_on_its_own_is_a_whole_svg_file_in_light_and_dark(example, name):
    root = ET.fromstring(standalone(drawing(name, charts()[name], rows(example))))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in root[0].text
