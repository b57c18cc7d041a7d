"""Every chart draws any run, states its finding in its title, and is byte-identical each time."""

import itertools
import re
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from zoomgrad import engines, reports
from zoomgrad.reports.charts import charts
from zoomgrad.reports.charts.drawing import dots, style
from zoomgrad.reports.charts.drawing.svg import drawing, standalone
from zoomgrad.reports.measured.table import cells, measured
from zoomgrad.reports.measured.trade_off import front, traded
from zoomgrad.reports.sections.compiling.engines import source

ROOT = Path(__file__).parents[2]
NAMES = [name for name, chart in charts().items() if chart.SUBJECT == "headline"]
TITLES = {
    "compile_against_epoch": "The untouched MNIST graph, same bits: 16.3 s to compile, ≈ 9.79 s per epoch "
    "(clang-O1 on cpython-3.13), against nothing and ≈ 23.8 h for baseline",
    "total_time": "rerolled-clang-fast takes the least total time on cpython-3.13 from the first image on",
    "speedups": "All 4 engines are faster than baseline on cpython-3.13: 1.3 times (tuple) "
    "to 340,000 times (rerolled-clang-fast)",
}
"""The charts of the headline's workload, and their findings."""


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
        assert source(name) == Path(module.__file__).resolve().relative_to(ROOT).as_posix()
    colours = [colour for colour, _ in style.FAMILIES.values()]
    assert len(set(colours)) == len(colours)
    assert style.family("tccx") == style.family("my-tcc") == "other"


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


@pytest.mark.parametrize("name", ["compile_against_epoch", "total_time"])
def test_leading_engines_are_labelled_and_labels_do_not_overlap(crowded_chart, name):
    found = list(labels(crowded_chart(name).svg))
    assert {"replay", "tcc"} <= {text for text, *_ in found}
    for one, other in itertools.combinations(found, 2):
        apart = one[2] <= other[1] or other[2] <= one[1] or abs(one[3] - other[3]) >= 8.5
        assert apart, (one, other)


def test_the_chart_of_total_time_names_the_winners_in_turn(crowded_chart):
    assert crowded_chart("total_time").title == (
        "Least total time on cpython-3.14: replay, then tcc from ≈ 11, clang-O0 from ≈ 5,000, "
        "clang-O1-native from ≈ 8,800, clang-O1 from ≈ 78,000, clang-O2 from ≈ 570,000 images on"
    )


def test_total_time_uses_the_reference_or_another_interpreter(example):
    chart = charts()["total_time"]
    assert "on cpython-3.11" in chart.title(rows(example.only(lambda cell: cell.interpreter != "cpython-3.13")))
    assert chart.title(rows(example.interrupted(0))) == "No total time was measured"


def test_a_crossing_beyond_the_chart_is_not_in_its_title(example):
    """xor has four samples per epoch, so a hundred epochs are too few to repay a compiler."""
    assert charts()["total_time"].title(rows(example, "xor")) == (
        "tuple takes the least total time on cpython-3.13 from the first sample on"
    )


def test_each_chart_states_its_finding_in_text_with_whole_references(example, usual):
    ids = []
    for name, title in TITLES.items():
        drawn = usual(name)
        assert drawn.title == title
        assert drawing(name, charts()[name], rows(example)).svg == drawn.svg, "it differs from time to time"
        root = ET.fromstring(str(drawn.svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
        assert "clang-O1" in [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert (root.get("role"), "#000000" in drawn.svg, "currentColor" in drawn.svg) == ("img", False, True)
        own = re.findall(r'\bid="([^"]+)"', drawn.svg)
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawn.svg)) <= set(own)
        ids += own
        alone = ET.fromstring(standalone(drawn))
        assert "prefers-color-scheme:dark" in alone[0].text
        assert "data-cell" not in standalone(drawn)
        tip = 'data-cell="clang-O1/cpython-3.13/mnist"><title>clang-O1/cpython-3.13/mnist: '
        assert (tip in drawn.svg.replace("\n", "")) == (name != "total_time")
    assert len(ids) == len(set(ids))


# Compile time against epoch time

RACE = {"none": (0.0, 100.0), "slower": (0.0, 120.0), "tcc": (1.0, 5.0), "late": (2.0, 5.0), "clang": (30.0, 1.0)}
"""Engine -> compile seconds and epoch seconds."""


def test_the_front_holds_the_engines_that_no_other_beats(example):
    race = pd.DataFrame(
        [(name, *seconds) for name, seconds in RACE.items()], columns=["engine", "compile_seconds", "epoch_seconds"]
    )
    for some in (race, race.iloc[::-1]):
        assert list(front(some)["engine"]) == ["none", "tcc", "clang"]
    assert list(front(race.iloc[:1])["engine"]) == ["none"]
    assert set(traded(rows(example))["interpreter"]) == {"cpython-3.11", "cpython-3.13"}
    assert traded(rows(example.interrupted(0))).empty


def test_an_engine_with_unknown_compile_time_is_not_on_the_chart(example):
    """Every block loaded the object that an interrupted block had compiled."""
    (cell,) = (one for one in example.run.cells if one.key == "clang-O1/cpython-3.13/mnist")
    loaded = example.with_records(cell, *(example.measured(cell, n, phases={}, tape_rows=9) for n in range(3)))
    svg = drawn(cells(loaded.run, loaded.records), "compile_against_epoch").svg
    assert ">clang-O1<" not in svg
    assert ">rerolled-clang-fast<" in svg


# Speedups


def test_speedups_with_too_few_processes_have_hollow_marks_and_a_key(example):
    few = example.mapped(lambda record: record if record.block == 0 else None)
    assert ">no interval<" in drawn(cells(few.run, few.records), "speedups").svg
    table = rows(example)
    for hollow in (True, False):
        axes = Figure().subplots()
        dots.mark(axes, table, next(table.itertuples(index=False)), 1.0, 1.0, hollow=hollow, text="")
        assert {line.get_markerfacecolor() == "none" for line in axes.lines} == {hollow}


def slower(example, *engines):
    """Return the run in which these engines take so long, or vary so much, that they are not faster."""

    def change(record):
        seconds = (1.0 + record.block, 1.1 + record.block) if record.cell.engine in engines else record.step_seconds
        return (
            example.measured(record.cell, record.block, step_seconds=seconds) if record.status == "measured" else record
        )

    return example.mapped(change)


SLOW = ("tuple", "local-grads", "clang-O1", "rerolled-clang-fast")


@pytest.mark.parametrize(
    ("change", "title"),
    [
        (lambda example: slower(example, "tuple"), "3 of 4 engines are faster than baseline on cpython-3.13: "),
        (lambda example: slower(example, *SLOW), "No engine is measurably faster than baseline on cpython-3.13"),
        (lambda example: slower(example, *SLOW[1:]), "1 of 4 engines is faster than baseline on cpython-3.13: tuple"),
        (lambda example: only(example, "baseline", "tuple"), "tuple is 1.3 times as fast as baseline on cpython-3.13"),
        (lambda example: only(example, "baseline"), "No engine was measured alongside baseline on any interpreter"),
        (lambda example: only(example, "tuple", "clang-O1"), "No engine was measured alongside baseline"),
        (lambda example: only(example), "No engine was measured alongside baseline on any interpreter"),
    ],
)
def test_the_title_counts_engines_that_are_faster_beyond_noise(example, change, title):
    assert charts()["speedups"].title(rows(change(example))).startswith(title)


def only(example, *engines):
    return example.only(lambda cell: cell.engine in engines)


def test_each_row_has_its_engine_its_bound_and_room_for_its_interpreters(example, usual):
    svg = usual("speedups").svg
    names = [name for name in re.findall(r">([a-zA-Z0-9-]+)</text>", svg) if name in example.run.engines]
    assert names == list(example.run.engines)[1:], "rows don't follow the order of the ladder"
    assert svg.count(">within 1e-06<") == 1
    assert all((f">{name}<" in svg) == (name != "pypy-3.9") for name in example.run.interpreters), "PyPy was skipped"
    one = rows(example.only(lambda cell: cell.interpreter == "cpython-3.13"))
    assert dots.size(measured(rows(example)))[1] > dots.size(one)[1]
