"""Every chart draws any run, states its finding in its title, and is byte-identical each time."""

import itertools
import re
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb

import engines
import reports.charts
from reports.charts import charts
from reports.charts.drawing import style
from reports.charts.drawing.svg import drawing, standalone
from reports.measured.table import cells
from reports.sections.compiling.engines import source

ROOT = Path(__file__).parents[2]
NAMES = [name for name, chart in charts().items() if chart.SUBJECT == "headline"]
TITLES = {
    "compile_against_epoch": "The untouched MNIST graph, same bits: 16.3 s to compile, ≈ 9.79 s per epoch "
    "(clang-O1 on cpython-3.13), against nothing and ≈ 23.8 h for baseline",
    "total_time": "rerolled-clang-fast takes the least total time on cpython-3.13 from the first image on",
    "speedups": "All 4 engines are faster than baseline on cpython-3.13: 1.3 times (tuple) "
    "to 340,000 times (rerolled-clang-fast)",
    "compile_phases": "“compile” is the longest phase of 2 engines of 2 on cpython-3.13, up to 93 % (clang-O1)",
}
"""The charts that label every engine, and their findings."""


def rows(example, workload="mnist"):
    table = cells(example.run, example.records)
    return table[table["workload"] == workload]


def drawn(table, name):
    return drawing(name, charts()[name], table[table["workload"] == "mnist"])


LABEL = re.compile(
    r'font-size: 8.5px[^>]*text-anchor: (?P<anchor>\w+)[^"]*" '
    r'x="(?P<x>[-\d.]+)" y="(?P<y>[-\d.]+)"[^>]*>(?P<text>[^<]+)<'
)


@pytest.fixture(scope="module")
def usual(example):
    """`usual(name)` draws the chart of the example's headline workload once."""
    return cache(lambda name: drawing(name, charts()[name], rows(example)))


@pytest.fixture(scope="module")
def crowded_chart(crowded_table):
    """`crowded_chart(name)` draws the chart of a run with every engine once."""
    return cache(lambda name: drawn(crowded_table, name))


def explicit(svg):
    """Return the drawing with an explicit style on each element instead of its class."""
    styles = dict(re.findall(r"\.(s\d+)\{([^}]*)\}", str(svg)))
    return re.sub(
        r'<(\w+)([^>]*) class="(s\d+)"', lambda found: f'<{found[1]} style="{styles[found[3]]}"{found[2]}', svg
    )


def labels(svg):
    """Yield the boxes of the labels beside marks: text, left, right and baseline, in points."""
    for found in LABEL.finditer(explicit(svg)):
        width = len(found["text"]) * 8.5 * 0.55
        left = float(found["x"]) - (width if found["anchor"] == "end" else 0.0)
        yield found["text"], left, left + width, float(found["y"])


def test_charts_are_found_in_their_folder():
    files = Path(reports.charts.__file__).parent.rglob("*.py")
    assert {path.stem for path in files if re.search(r"(?m)^ORDER\b", path.read_text(encoding="utf-8"))} == {*charts()}


def test_a_report_has_five_charts():
    names = ["compile_against_epoch", "total_time", "speedups", "compile_phases", "warm_up"]
    assert [name for name, chart in charts().items() if chart.SUBJECT in ("headline", "sequences")] == names


def test_colours_stand_out_on_both_pages():
    """3:1, as WCAG asks of marks."""

    def luminance(colour):
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
        return sum(part * weight for part, weight in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))

    css = (Path(reports.charts.__file__).parents[1] / "templates" / "report.css").read_text(encoding="utf-8")
    assert re.findall(r"--page: (#\w+)", css)[:2] == [style.ON_WHITE, style.ON_DARK]
    for colour in (*style.SERIES, *(colour for colour, _ in style.FAMILIES.values())):
        for page in (style.ON_WHITE, style.ON_DARK):
            dark, light = sorted((luminance(colour), luminance(page)))
            assert (light + 0.05) / (dark + 0.05) >= 3, (colour, page)


def test_every_engine_of_the_project_has_a_family_and_its_own_source():
    for name in engines.names():
        family = style.family(name)
        assert family != "other", name
        module = sys.modules[type(engines.load(name)).__module__]
        assert source(name) == Path(module.__file__).relative_to(ROOT).as_posix()
    colours = [colour for colour, _ in style.FAMILIES.values()]
    assert len(set(colours)) == len(colours)
    assert style.family("tccx") == style.family("my-tcc") == "other"


@pytest.mark.parametrize("name", TITLES)
def test_a_title_states_the_finding(example, name):
    assert charts()[name].title(rows(example)) == TITLES[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_byte_identical_each_time(example, usual, name):
    assert drawing(name, charts()[name], rows(example)).svg == usual(name).svg


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_accessible_text_in_the_pages_colours(usual, name):
    svg = str(usual(name).svg)
    root = ET.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "clang-O1" in texts or name not in TITLES
    assert root.get("role") == "img"
    assert "#000000" not in svg
    assert "currentColor" in svg


def test_ids_are_unique_over_all_charts_of_a_page(usual):
    ids = [re.findall(r'\bid="([^"]+)"', usual(name).svg) for name in NAMES]
    flat = [one for of_chart in ids for one in of_chart]
    assert len(flat) == len(set(flat))


def test_every_reference_in_a_chart_has_its_target(usual):
    for name in NAMES:
        svg = usual(name).svg
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
        assert used <= set(re.findall(r'\bid="([^"]+)"', svg))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("state", ["nothing measured", "one cell", "xor"])
def test_a_chart_draws_any_data(example, name, state):
    table = {
        "nothing measured": lambda: rows(example.interrupted(0)),
        "one cell": lambda: rows(example.only(lambda cell: cell == example.run.cells[1])),
        "xor": lambda: rows(example, "xor"),
    }[state]()
    assert "</svg>" in drawing(name, charts()[name], table).svg


def test_published_points_are_only_on_their_workload(example):
    chart = charts()["compile_against_epoch"]
    assert "another machine" in chart.caption(rows(example))
    assert "another machine" not in chart.caption(rows(example, "xor"))


def test_names_are_not_parsed_as_formulas_or_tags(example):
    odd = "a$b$<i>&"
    baseline, record = (
        next(record for record in example.records if record.cell.key == f"{engine}/cpython-3.13/mnist")
        for engine in ("baseline", "clang-O1")
    )
    cell = record.cell.model_copy(update={"engine": odd})
    run = example.run.model_copy(update={"cells": (baseline.cell, cell)})
    table = cells(run, [baseline, record.model_copy(update={"cell": cell})])
    for name in TITLES:
        svg = drawing(name, charts()[name], table).svg
        assert "a$b$&lt;i&gt;&amp;" in svg
        assert "<i>" not in svg


@pytest.mark.parametrize("name", NAMES)
def test_a_standalone_chart_is_an_svg_file_for_light_and_dark(usual, name):
    root = ET.fromstring(standalone(usual(name)))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in root[0].text


@pytest.mark.parametrize("name", ["compile_against_epoch", "total_time"])
def test_leading_engines_are_labelled_and_labels_do_not_overlap(crowded_chart, name):
    found = list(labels(crowded_chart(name).svg))
    assert {"replay", "tcc"} <= {text for text, *_ in found}
    for one, other in itertools.combinations(found, 2):
        apart = one[2] <= other[1] or other[2] <= one[1] or abs(one[3] - other[3]) >= 8.5
        assert apart, (one, other)


@pytest.mark.parametrize("name", ["speedups", "compile_phases"])
def test_a_chart_of_every_engine_labels_every_variant(crowded_chart, name):
    for engine in ("tcc-whole", "clang-O1-native", "clang-O1-whole"):
        assert re.search(rf">{engine}(, \d\.\d\d)?<", crowded_chart(name).svg)


def test_the_chart_of_total_time_names_the_winners_in_turn(crowded_chart):
    assert crowded_chart("total_time").title == (
        "Least total time on cpython-3.14: replay, then tcc from ≈ 11, clang-O0 from ≈ 5,000, "
        "clang-O1-native from ≈ 8,800, clang-O1 from ≈ 78,000, clang-O2 from ≈ 570,000 images on"
    )


def test_crossings_are_marked(crowded_chart):
    assert {"≈ 11", "≈ 5,000", "≈ 78,000"} <= {text for text, *_ in labels(crowded_chart("total_time").svg)}


def test_total_time_uses_the_reference_or_another_interpreter(example):
    chart = charts()["total_time"]
    assert "on cpython-3.11" in chart.title(rows(example.only(lambda cell: cell.interpreter != "cpython-3.13")))
    assert chart.title(rows(example.interrupted(0))) == "No total time was measured"


def test_a_crossing_beyond_the_chart_is_not_in_its_title(example):
    """xor has four samples per epoch, so a hundred epochs are too few to repay a compiler."""
    assert charts()["total_time"].title(rows(example, "xor")) == (
        "tuple takes the least total time on cpython-3.13 from the first sample on"
    )


def test_an_engine_with_unknown_compile_time_is_not_on_the_chart(example):
    """Every block loaded the object that an interrupted block had compiled."""
    loaded = example.mapped(
        lambda record: (
            record.model_copy(update={"phases": {}, "tape_rows": 9})
            if record.cell.engine == "clang-O1" and record.status == "measured"
            else record
        )
    )
    svg = drawn(cells(loaded.run, loaded.records), "compile_against_epoch").svg
    assert ">clang-O1<" not in svg
    assert ">rerolled-clang-fast<" in svg
