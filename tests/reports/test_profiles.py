"""Profiles in the report: lines, ladders, collections, PyPy's JIT, C compilers, and missing profiles."""

import re
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest

from reports.build import build
from reports.charts import charts
from reports.charts.drawing.svg import drawing
from reports.pages import html, markdown
from reports.profiling import claim_metrics as metrics
from reports.profiling.anatomy import anatomies, parts
from reports.profiling.claims import CLAIMS
from reports.profiling.collector import collectors
from reports.profiling.compilers import compilers
from reports.profiling.hottest import HOTTEST, hottest, ladders, pages, top_lines
from reports.profiling.jit import jits
from reports.profiling.memory_over_time import memories
from reports.profiling.profile_index import profile_index
from reports.profiling.profiles import profiled
from reports.profiling.symbol_ladder import symbol_ladder
from reports.story import story
from results.files import Unreadable
from results.profile import CollectorProfile, JitProfile, LineProfile, SymbolProfile
from results.record import Cell
from results.store import Store
from tests.reports import example_profiles
from tests.reports.example_profiles import CHILDREN, CREATION, GRADIENT, LADDER, NASTY, NEW, OLD, PYPY, WORKLOAD, cell


def index_of(*profiles, files=None):
    return profile_index(example_profiles.run(), profiles, files)


def texts(row):
    return [figure.text for figure in row]


def sheet(section, title=""):
    (found,) = [one for one in section.sheets if title in one.title]
    return found


def test_the_conclusions_come_first_with_a_column_per_interpreter(index):
    (only,) = profiled(index).steps[0].sheets
    headings = [f"{name}, {WORKLOAD}" for name in (OLD, NEW, PYPY, "Skybison")]
    assert only.headings == ("claim", *headings)
    of_cpython, of_pypy = ("not seen", "holds", "–", "–"), ("–", "–", "holds", "–")
    of_both, of_none = ("not seen", "holds", "holds", "–"), ("–", "–", "–", "cannot be tested here")
    conclusions = {claim.metric: tuple(texts(row)[1:]) for claim, row in zip(CLAIMS, only.rows, strict=True)}
    assert conclusions[metrics.is_compiled] == ("–", "–", "does not hold", "–")
    assert conclusions[metrics.rank_of_adding] == ("not seen", "does not hold", "–", "–")
    assert {conclusions[None]} == {of_none}
    nobody_compiled = ("–", "–", "–", "–")
    assert conclusions[metrics.fused] == nobody_compiled
    others = {*conclusions.values()} - {of_none, nobody_compiled, conclusions[metrics.is_compiled]}
    assert others - {conclusions[metrics.rank_of_adding]} == {of_cpython, of_pypy, of_both}


# --- lines -------------------------------------------------------------------------------------------------------


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


# --- the ladder --------------------------------------------------------------------------------------------------


def test_a_lines_cost_is_shown_for_each_variant(index):
    (only,) = ladders(index).sheets
    assert only.headings == ("source", *LADDER)
    rows = {row[0].text: texts(row)[1:] for row in only.rows}
    assert rows[CREATION] == ["30 %", "25 %", "20 %", "15 %"]
    assert rows[CHILDREN] == ["20 %", "", "", ""]
    assert rows[GRADIENT] == ["9.0 %"] * 4
    assert f"“{CREATION}” takes 30 % of baseline and 15 % of hoisted" in only.title


def test_a_ladder_needs_two_variants_and_excludes_compiled_engines():
    one = example_profiles.lines(cell("baseline"), example_profiles.line("x", 0.1))
    compiling = example_profiles.lines(cell("clang-O1"), example_profiles.line("x", 0.1), preparations=2)
    assert ladders(index_of(one, compiling)) is None
    assert [row[2].text for row in sheet(top_lines(index_of(one, compiling))).rows] == ["baseline"]


# --- accounts ----------------------------------------------------------------------------------------------------


def test_collections_are_beside_perfs_samples(index):
    rows = [texts(row) for row in sheet(collectors(index), WORKLOAD).rows]
    assert rows[0] == [NEW, "baseline", "40 %", "88 %", "1,000 / 100 / 10", "15", "2,000", "100,000"]
    assert rows[-1] == [PYPY, "baseline", "10 %", "–", "1,000 / 100", "–", "–", "–"]
    assert sheet(collectors(index)).rows[0][4].below == "generations 0 / 1 / 2"


def test_pypys_account_includes_aborted_traces(index):
    section = sheet(jits(index))
    rows = {row[0].text: row for row in section.rows}
    assert rows["python-source"][8].text == "7"
    assert rows["python-source"][8].below == "trace too long: 7"
    assert rows["python-source"][8].mark == "wraps steep"
    assert rows["baseline"][9].below == "first 500 ms, 12.5×"
    (sentence,) = section.notes
    assert "blows the trace limit on python-source (mnist) 7 times" in sentence
    assert sentence.endswith("50.0× as fast; for comparison: baseline 12.5×.")


def test_a_compilers_whole_form_is_beside_its_split_form(index):
    (only,) = compilers(index).sheets
    assert [row[0].text for row in only.rows] == ["clang-O1", "clang-O1-whole"]
    assert [(figure.text, figure.below) for figure in only.rows[1][6:]] == [
        ("79,560", "39,750 forward, 39,810 backward"),
        ("79,510", "39,750 forward, 39,760 backward"),
        ("0", ""),
        ("60 %", "Greedy Register Allocator"),
        ("10 %", "SROA"),
        *[("–", "")] * 3,
    ]
    assert only.notes == (
        f"On {NEW}, compiling clang-O1-whole takes 15.0× as long as clang-O1: 60.0 s against 4.00 s. "
        "Greedy Register Allocator alone takes 60 % of it, and 20 % in the split form.",
    )


def fusing(engine, instructions, reason=""):
    made = example_profiles.compiler(cell(engine), 2.0, 3, SROA=0.5)
    counts = {"fusable_forward": 2000, "fusable_backward": 1500, "fusable_forward_alone": 1800}
    taken = {"fusable_backward_alone": 1, "fused_instructions": instructions, "fused_reason": reason}
    return made.model_copy(update={"flags": ("-O1", "-ffp-contract=fast"), **counts, **taken})


def test_fusable_and_fused_sums_are_counted(index):
    (only,) = compilers(index_of(fusing("clang-O1-fma", 1700), fusing("clang-O1-published-fma", 0))).sheets
    row = dict(zip(only.headings, only.rows[0], strict=True))
    assert (row["fusable"].text, row["fusable"].below) == ("3,500", "2,000 forward, 1,500 backward")
    assert (row["alone"].text, row["alone"].below) == ("1,801", "1,800 forward, 1 backward")
    assert row["fused"].text == "1,700"
    found = "has 3,500 fusable sums in a step, 2,000 of them forward and 1,801 of them alone; its object has"
    assert only.notes[-2:] == (
        f"clang-O1-fma {found} 1,700 multiply-add instructions.",
        f"clang-O1-published-fma {found} 0 multiply-add instructions.",
    )


def test_missing_counts_of_fusing_have_a_reason():
    (only,) = compilers(index_of(fusing("clang-O1-fma", None, "there is no objdump on PATH"))).sheets
    assert dict(zip(only.headings, only.rows[0], strict=True))["fused"].text == "–"
    assert only.notes[-2].endswith("alone; fused instructions were not counted.")
    assert only.notes[-1] == "Fused instructions were not counted: there is no objdump on PATH."


# --- steps, memory, symbols --------------------------------------------------------------------------------------


def test_a_step_is_divided_into_parts_in_seconds_and_shares(index):
    only = sheet(anatomies(index), WORKLOAD)
    assert only.headings[:2] == ("interpreter", "engine")
    row = only.rows[0]
    told = dict(zip(only.headings, [(figure.text, figure.below) for figure in row], strict=True))
    assert texts(row)[:3] == [NEW, "baseline", "1.12 s"]
    assert told["build"] == ("150 ms", "13 %")
    assert told["collector"] == ("600 ms", "54 %")
    assert told["free"] == ("0", "")
    assert told["timing adds"] == ("+1.8 %", "")
    (prepared,) = only.notes
    assert prepared.startswith(f"replay builds and orders its graph once, before the first step: 1.50 s on {NEW}.")


def test_memory_has_a_start_a_peak_and_floors(index):
    rows = sheet(memories(index), WORKLOAD).rows
    assert texts(rows[0]) == [NEW, "baseline", "50.0 MB", "150 MB", "70.0 MB", "130 MB", "20"]
    assert rows[0][5].below == "+85.7 %"
    assert texts(rows[1])[2:] == ["50.0 MB", "70.0 MB", "50.0 MB", "50.0 MB", "20"]


def test_symbols_are_beside_the_published_ones_for_each_variant(index):
    only = sheet(symbol_ladder(index), f"{WORKLOAD} on {NEW}")
    assert only.folded
    assert only.title.endswith(": gc_collect_main takes 38 % of baseline")
    assert only.headings == ("function", "published, baseline", *LADDER)
    rows = {row[0].text: texts(row)[1:] for row in only.rows}
    assert list(rows)[:3] == ["gc_collect_main", "deduce_unreachable", "visit_reachable"]
    assert rows["gc_collect_main"] == ["37.41 %", "38 %", "", "", ""], (
        "the shares of a symbol's copies are not added up"
    )
    assert rows["func_traverse"] == ["2.04 %", "3.0 %", "3.0 %", "3.0 %", "0.1 %"]
    assert rows["PyObject_VisitManagedDict"] == ["", "2.0 %", "2.0 %", "", ""]
    assert rows["visit_decref"] == ["", "10 %", "10 %", "10 %", "10 %"]
    assert only.notes == (
        "Functions left out add up to 9.0 % of baseline, 85 % of tuple, 87 % of slots, 90 % of hoisted.",
    )


def test_a_runtime_unknown_to_perf_has_no_symbol_ladder():
    where = cell("baseline", PYPY)
    assert symbol_ladder(index_of(example_profiles.symbols(where, {"PyPy's runtime": 1.0}, {"[unknown]": 1.0}))) is None


# --- the charts --------------------------------------------------------------------------------------------------


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


# --- the whole report --------------------------------------------------------------------------------------------


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
    example_profiles.made(CollectorProfile, cell("hoisted"), blocks_left=0.0),
    example_profiles.anatomy(cell("tuple"), build=1.0, plain=0.0),
    example_profiles.memory(cell("tuple"), 7, warm_up=2.0),
    example_profiles.symbols(cell("baseline", PYPY), {"PyPy's runtime": 1.0}, {"[unknown]": 1.0}),
    fusing("clang-O1-fma", 0).model_copy(update=dict.fromkeys((*example_profiles.FUSABLE, "fused_instructions"))),
]


def test_what_a_profile_did_not_see_is_absent():
    """No CPU time, no collection, no plain step, too few samples, no known symbol, and no count of fused sums."""
    one, two, three, four, five, six = (index_of(profile) for profile in ODD)
    assert texts(hottest(one).sheets[0].rows[0])[1:] == ["only memory", "0 %", "5 B"]
    assert texts(sheet(collectors(two)).rows[0])[2:] == ["0 %", "–", "none", "0", "0", "–"]
    assert sheet(anatomies(three)).rows[0][-1].text == "–"
    assert texts(sheet(memories(four)).rows[0])[4:6] == ["–", "–"]
    assert symbol_ladder(five) is None
    (only,) = compilers(six).sheets
    row = dict(zip(only.headings, only.rows[0], strict=True))
    assert {row[name].text for name in ("fusable", "alone", "fused")} == {"–"}
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
    assert {*names, "flame-graphs", "collector", "jit", "compiler-passes"} <= set(ids)
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
