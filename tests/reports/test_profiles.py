"""Profiles in the report: lines, ladders, collections, PyPy's JIT, C compilers, and missing profiles."""

import re
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest

from tests.reports import example_profiles
from tests.reports.example_profiles import NASTY, NEW, PYPY, WORKLOAD, cell
from zoomgrad.reports.build import build
from zoomgrad.reports.charts import charts
from zoomgrad.reports.charts.drawing.svg import drawing
from zoomgrad.reports.pages import html, markdown
from zoomgrad.reports.profiling.anatomy import anatomies, parts
from zoomgrad.reports.profiling.hottest import HOTTEST, hottest, ladders, pages, top_lines
from zoomgrad.reports.profiling.memory_over_time import memories
from zoomgrad.reports.profiling.profile_index import profile_index
from zoomgrad.reports.profiling.profiles import profiled
from zoomgrad.reports.profiling.symbol_ladder import symbol_ladder
from zoomgrad.reports.story import story
from zoomgrad.results.files import Unreadable
from zoomgrad.results.profile import JitProfile, LineProfile, SymbolProfile
from zoomgrad.results.record import Cell
from zoomgrad.results.store import Store


def index_of(*profiles, files=None):
    return profile_index(example_profiles.run(), profiles, files)


def texts(row):
    return [figure.text for figure in row]


def sheet(section, title=""):
    (found,) = [one for one in section.sheets if title in one.title]
    return found


def test_the_text_of_every_section(index, golden):
    """The claims, and each account of a profiler, as Markdown."""
    told = profiled(index)
    sections = (*told.steps, *told.lines, *told.symbols, *told.accounts)
    golden("profiles.md", "\n".join(map(markdown.results_page, sections)))


def test_the_hottest_lines_by_either_measure_have_their_source():
    by_cpu = [example_profiles.line(f"hot{n}", 0.1 - 0.01 * n, number=n) for n in range(7)]
    by_size = [example_profiles.line(f"large{n}", 0.0, 1e6 - n, number=10 + n) for n in range(7)]
    section = hottest(index_of(example_profiles.lines(cell("baseline"), *by_size, *by_cpu)))
    (only,) = section.sheets
    assert only.folded
    assert "10 % in baseline.py:0" in only.title
    assert [row[1].text for row in only.rows] == [f"{kind}{n}" for kind in ("hot", "large") for n in range(HOTTEST)]
    assert [row[2].below for row in only.rows] == ["1st", "2nd", "3rd", "4th", "5th", *[""] * HOTTEST]
    assert [row[3].below for row in only.rows] == [*[""] * HOTTEST, "1st", "2nd", "3rd", "4th", "5th"]
    first = only.rows[0][2]
    assert [bar.kind for bar in first.bars] == ["python", "native", "system"]
    assert sum(bar.part for bar in first.bars) == pytest.approx(1.0)


@pytest.mark.parametrize(("file", "is_shown"), [("engines/kernel/library.py", False), ("engines/nn.py", True)])
def test_a_cell_whose_hottest_line_calls_c_is_left_out(file, is_shown):
    lines = [
        example_profiles.line(name, cpu).model_copy(update={"file": at})
        for name, cpu, at in (("call", 0.6, file), ("other", 0.4, "engines/value_base.py"))
    ]
    assert bool(hottest(index_of(example_profiles.lines(cell("tcc"), *lines)))) == is_shown


def test_links_lead_only_to_existing_files(index):
    links = sheet(hottest(index), f"baseline on {NEW}").links
    folder = f"profiles/baseline--{NEW}--{WORKLOAD}"
    assert [link.path for link in links] == [
        f"{folder}/flame-scalene.svg",
        f"{folder}/scalene.html",
        f"{folder}/flame-perf.svg",
    ]
    assert sheet(hottest(index), f"tuple on {NEW}").links == ()
    rows = sheet(pages(index)).rows
    assert [texts(row)[:2] for row in rows] == [["baseline", NEW], ["baseline", PYPY]]


def test_a_links_path_is_quoted():
    odd = Cell.model_construct(engine='a"b#c?%', interpreter=NEW, workload=WORKLOAD)
    index = index_of(
        example_profiles.lines(odd, example_profiles.line("x", 0.1)), files={odd: frozenset({"scalene.html"})}
    )
    (link,) = hottest(index).sheets[0].links
    assert not set(link.path) & set("\"'#?<> ")
    assert unquote(link.path) == f'profiles/a"b#c?%--{NEW}--{WORKLOAD}/scalene.html'


def test_a_ladder_needs_two_variants_and_excludes_compiled_engines():
    one = example_profiles.lines(cell("baseline"), example_profiles.line("x", 0.1))
    compiling = example_profiles.lines(cell("clang-O1"), example_profiles.line("x", 0.1), preparations=2)
    assert ladders(index_of(one, compiling)) is None
    assert [row[2].text for row in sheet(top_lines(index_of(one, compiling))).rows] == ["baseline"]


def test_a_runtime_unknown_to_perf_has_no_symbol_ladder():
    where = cell("baseline", PYPY)
    assert symbol_ladder(index_of(example_profiles.symbols(where, {"PyPy's runtime": 1.0}, {"[unknown]": 1.0}))) is None


def drawn_texts(drawn):
    root = ET.fromstring(str(drawn.svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_chart_of_a_step_divides_and_labels_each_bar(index):
    drawn = drawing("anatomy", charts()["anatomy"], parts(index))
    assert drawn.title == (
        f"Most of a step of baseline on {NEW} goes to: collecting garbage (54 %), then ordering the graph (18 %)"
    )
    found = drawn_texts(drawn)
    assert {NEW, PYPY, "replay", "building the graph", "collecting garbage", "1.12 s", "55.0 ms"} <= set(found)


def test_a_hostile_line_is_escaped(index, profiled_page):
    assert profiled_page.count("<script") == 1
    assert "&lt;/code&gt;&lt;script&gt;window.ran = 1&lt;/script&gt; | `x` *y*" in profiled_page
    short = markdown.render(index.run, [], index)
    assert "<script" not in short
    assert NASTY not in short


def stored(folder, profiles, stacks=example_profiles.STACKS):
    store = Store.create(example_profiles.run(), under=folder)
    for profile in profiles:
        store.write_profile(profile)
    left = store.profile_folder(cell("baseline"))
    left.mkdir(parents=True)
    (left / "scalene.folded").write_text(stacks, encoding="utf-8")
    return store


ODD = [
    example_profiles.lines(cell("baseline"), example_profiles.line("only memory", 0.0, 5.0)),
    example_profiles.anatomy(cell("tuple"), build=1.0, plain=0.0),
    example_profiles.memory(cell("tuple"), 7, warm_up=2.0),
    example_profiles.symbols(cell("baseline", PYPY), {"PyPy's runtime": 1.0}, {"[unknown]": 1.0}),
]


def test_what_a_profile_did_not_see_is_absent():
    """No CPU time, no plain step, too few samples, no known symbol."""
    one, three, four, five = (index_of(profile) for profile in ODD)
    assert texts(hottest(one).sheets[0].rows[0])[1:] == ["only memory", "0 %", "5 B"]
    assert sheet(anatomies(three)).rows[0][-1].text == "–"
    assert texts(sheet(memories(four)).rows[0])[4:6] == ["–", "–"]
    assert symbol_ladder(five) is None
    nothing = parts(index_of())
    assert "No " in charts()["anatomy"].title(nothing)
    assert "</svg>" in drawing("anatomy", charts()["anatomy"], nothing).svg


@pytest.mark.parametrize(
    "profile",
    [*{one.profiler: one for one in example_profiles.profiles()}.values(), *ODD],
    ids=lambda one: f"{one.profiler} {one.status}",
)
def test_a_single_profile_makes_a_report(profile):
    index = index_of(profile)
    run = index.run.model_copy(update={"blocks": 0})
    for text in (html.page(story(run, [], index), ()), markdown.render(run, [], index)):
        assert "This run has profiles only: it timed nothing" in text
        assert "never run" not in text


def test_missing_profiles_have_a_reason_and_a_remedy():
    kinds = (LineProfile, SymbolProfile, JitProfile)
    index = index_of(*(example_profiles.missing(model, cell("tuple")) for model in kinds))
    (absence,) = profiled(index).absences
    assert (absence.status, absence.reason, absence.remedy) == ("skipped", "perf is not installed", "Install it.")
    assert len(absence.cells) == 3
    page = html.page(story(index.run, [], index), ())
    assert "0 of 3 profiles gave a result" in page
    assert ('id="absent-profiles"' in page, 'id="hottest-lines"' in page) == (True, False)
    assert "3 profiles gave no result (skipped: perf is not installed)" in markdown.render(index.run, [], index)


def test_the_page_has_every_section_once_and_fetches_nothing(profiled_page):
    ids = re.findall(r'\bid="([^"]+)"', profiled_page)
    assert len(ids) == len(set(ids))
    names = ("profiles", "claims", "anatomy-of-a-step", "memory-over-time", "symbols", "hottest-lines", "line-ladder")
    assert {*names, "flame-graphs", "jit", "compiler-passes"} <= set(ids)
    assert not re.search(r"""\bsrc=|href=(?!["'](?:\#|data:|profiles/))""", profiled_page)


def test_build_draws_flame_graphs_and_writes_the_analysis(tmp_path):
    store = Store.create(example_profiles.run(), under=tmp_path)
    build(store)
    assert not (store.folder / "analysis.md").exists(), "there is no profile"
    for profile in example_profiles.profiles():
        store.write_profile(profile)
    left = store.profile_folder(cell("baseline"))
    left.mkdir(parents=True)
    (left / "scalene.folded").write_text(example_profiles.STACKS, encoding="utf-8")
    page = build(store).read_text(encoding="utf-8")
    for path in re.findall(r'href="(profiles/[^"]+)"', page):
        assert (store.folder / unquote(path)).is_file()
    assert "baseline" in (left / "flame-scalene.svg").read_text(encoding="utf-8")
    assert (store.folder / "charts" / "anatomy.svg").is_file()
    assert (store.folder / "analysis.md").read_text(encoding="utf-8").startswith("# Do the published claims hold?")
    (left / "scalene.folded").write_text("a;b 3\na;c", encoding="utf-8")
    with pytest.raises(Unreadable, match=r"scalene\.folded: no count at the end of 'a;c'\n  Remove"):
        build(store)
