"""Profiles in the report: the anatomy of a step, hottest lines and links. tests/golden/report.md has their text."""

import re
from urllib.parse import unquote

import pytest

from tests.reports import example_profiles
from tests.reports.example_profiles import cell
from zoomgrad.reports.build import build
from zoomgrad.reports.profiling.anatomy import anatomies, largest_parts
from zoomgrad.reports.profiling.hottest import SHOWN, hottest
from zoomgrad.reports.profiling.profile_index import profile_index
from zoomgrad.reports.sections.time_goes import time_goes
from zoomgrad.results.store import Store


def index_of(*profiles):
    return profile_index(example_profiles.run(), profiles)


def test_the_parts_of_a_step_fill_its_bar():
    (sheet,) = anatomies(index_of(*example_profiles.profiles()))
    bars = sheet.rows[0][2].bars
    assert len(bars) == 8
    assert bars[-1].start + bars[-1].length == pytest.approx(1.0)
    assert largest_parts(index_of()) == ""
    assert time_goes(index_of()) is None


def test_the_hottest_lines_of_a_cell_are_by_time_else_by_memory():
    lines = [example_profiles.line(f"hot{n}", 0.1 - 0.01 * n, 1e6, number=n) for n in range(7)]
    (sheet,) = hottest(index_of(example_profiles.lines(cell("baseline"), *lines)))
    assert [row[3].text for row in sheet.rows] == [f"hot{n}" for n in range(SHOWN)]
    assert [bar.kind for bar in sheet.rows[0][4].bars] == ["python", "native", "system"]
    assert sum(bar.length for bar in sheet.rows[0][4].bars) == pytest.approx(1.0)
    only_memory = index_of(example_profiles.lines(cell("baseline"), example_profiles.line("x", 0.0, 5.0)))
    assert [figure.text for figure in next(hottest(only_memory)).rows[0]][3:] == ["x", "0 %", "5 B"]


@pytest.mark.parametrize(("file", "is_shown"), [("engines/kernel/library.py", False), ("engines/nn.py", True)])
def test_a_cell_whose_hottest_line_calls_c_is_left_out(file, is_shown):
    lines = [
        example_profiles.line(name, cpu).model_copy(update={"file": at})
        for name, cpu, at in (("call", 0.6, file), ("other", 0.4, "engines/value_base.py"))
    ]
    assert bool(list(hottest(index_of(example_profiles.lines(cell("tcc"), *lines))))) == is_shown


def test_the_page_links_what_scalene_left(tmp_path):
    store = Store.create(example_profiles.run(), under=tmp_path)
    for profile in example_profiles.profiles():
        store.write_profile(profile)
    left = store.profile_folder(cell("baseline"))
    left.mkdir(parents=True)
    (left / "scalene.html").write_text("<html>", encoding="utf-8")
    (link,) = re.findall(r'href="(profiles/[^"]+)"', build(store).read_text(encoding="utf-8"))
    assert (store.folder / unquote(link)).is_file()
