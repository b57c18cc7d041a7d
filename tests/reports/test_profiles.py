"""Profiles in the report: the anatomy of a step, hottest lines, links and missing profiles."""

import re
from urllib.parse import unquote

import pytest

from tests.reports import example_profiles
from tests.reports.example_profiles import NASTY, NEW, cell
from zoomgrad.reports.build import build
from zoomgrad.reports.pages import html, markdown
from zoomgrad.reports.profiling.anatomy import anatomies, largest_parts
from zoomgrad.reports.profiling.hottest import SHOWN, hottest
from zoomgrad.reports.profiling.profile_index import profile_index
from zoomgrad.reports.sections.time_goes import time_goes
from zoomgrad.reports.story import story
from zoomgrad.results.profile import AnatomyProfile, LineProfile, SymbolProfile
from zoomgrad.results.store import Store


def index_of(*profiles):
    return profile_index(example_profiles.run(), profiles)


@pytest.fixture
def index():
    return index_of(*example_profiles.profiles())


def texts(row):
    return [figure.text for figure in row]


def test_the_parts_of_a_step_fill_its_bar(index):
    (sheet,) = anatomies(index)
    assert sheet.headings[2:5] == ("a step", "build", "forward")
    first = sheet.rows[0]
    assert texts(first)[:5] == [NEW, "baseline", "1.12 s", "150 ms", "100 ms"]
    bars = first[2].bars
    assert len(bars) == 8
    assert bars[-1].start + bars[-1].length == pytest.approx(1.0)
    assert largest_parts(index_of()) == ""
    assert time_goes(index).answer.startswith(
        f"A step of baseline on {NEW}: mostly collecting garbage (54 %) and ordering the graph (18 %); "
    )
    assert time_goes(index_of()) is None


def test_the_hottest_lines_of_a_cell_have_their_place_and_source():
    lines = [example_profiles.line(f"hot{n}", 0.1 - 0.01 * n, 1e6, number=n) for n in range(7)]
    (sheet,) = hottest(index_of(example_profiles.lines(cell("baseline"), *lines)))
    assert len(sheet.rows) == SHOWN
    assert texts(sheet.rows[0]) == [NEW, "baseline", "baseline.py:0", "hot0", "10 %", "1.00 MB"]
    assert texts(sheet.rows[1])[:4] == ["", "", "baseline.py:1", "hot1"]
    assert [bar.kind for bar in sheet.rows[0][4].bars] == ["python", "native", "system"]
    assert sum(bar.length for bar in sheet.rows[0][4].bars) == pytest.approx(1.0)
    only_memory = index_of(example_profiles.lines(cell("baseline"), example_profiles.line("x", 0.0, 5.0)))
    assert texts(next(hottest(only_memory)).rows[0])[3:] == ["x", "0 %", "5 B"]


@pytest.mark.parametrize(("file", "is_shown"), [("engines/kernel/library.py", False), ("engines/nn.py", True)])
def test_a_cell_whose_hottest_line_calls_c_is_left_out(file, is_shown):
    lines = [
        example_profiles.line(name, cpu).model_copy(update={"file": at})
        for name, cpu, at in (("call", 0.6, file), ("other", 0.4, "engines/value_base.py"))
    ]
    assert bool(list(hottest(index_of(example_profiles.lines(cell("tcc"), *lines))))) == is_shown


def test_a_hostile_line_is_escaped(index):
    told = story(index.run, [], index)
    page, short = html.page(told), markdown.page(told)
    assert page.count("<script") == 1
    assert "&lt;/code&gt;&lt;script&gt;window.ran = 1&lt;/script&gt; | `x` *y*" in page
    assert "<script" not in short
    assert NASTY not in short


def test_missing_profiles_have_a_reason_and_a_remedy():
    kinds = (LineProfile, SymbolProfile, AnatomyProfile)
    index = index_of(*(example_profiles.missing(model, cell("tuple")) for model in kinds))
    run = index.run.model_copy(update={"blocks": 0})
    profiles, absences, _ = story(run, [], index).sections
    assert profiles.answer.startswith("0 of 3 profiles gave a result.")
    assert absences.answer == "3 profiles: skipped"
    (row,) = absences.sheets[0].rows
    assert texts(row)[2:] == ["perf is not installed", "Install it."]


def test_the_page_links_what_scalene_left(tmp_path):
    store = Store.create(example_profiles.run(), under=tmp_path)
    for profile in example_profiles.profiles():
        store.write_profile(profile)
    left = store.profile_folder(cell("baseline"))
    left.mkdir(parents=True)
    (left / "scalene.html").write_text("<html>", encoding="utf-8")
    (link,) = re.findall(r'href="(profiles/[^"]+)"', build(store).read_text(encoding="utf-8"))
    assert (store.folder / unquote(link)).is_file()
