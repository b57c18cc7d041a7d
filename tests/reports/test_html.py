"""The offline HTML page, for every state of a run, also in a real browser."""

import html as stdlib_html
import re
from functools import cache
from pathlib import Path

import pytest

from reports.build import build, downloads, tell
from reports.charts import charts
from reports.pages import html, markdown
from reports.pages.flame_graph import flame, folded
from results.store import Store
from tests.reports import example_profiles
from tests.reports.browser import framed, in_browser

STATES = {
    "whole": lambda example: example,
    "empty plan": lambda example: example.only(lambda cell: False),
    "nothing ran": lambda example: example.interrupted(0),
    "interrupted in the first block": lambda example: example.interrupted(7),
    "interrupted in the second block": lambda example: example.interrupted(40),
    "one cell": lambda example: example.only(lambda cell: cell == example.run.cells[1]),
    "all skipped": lambda example: example.only(lambda cell: cell.interpreter == "pypy-3.9"),
    "all failed": lambda example: example.mapped(
        lambda record: example.stopped(record.cell, record.block, "failed", "ValueError: no", "Mend it.")
    ),
    "without PyPy": lambda example: example.only(lambda cell: cell.interpreter != "pypy-3.9"),
    "without baseline": lambda example: example.only(lambda cell: cell.engine != "baseline"),
}


PAGE = ("headline", "sequences")
"""Subjects of the charts that every run has."""


def with_subject(*subjects):
    """Return the names of the charts with these subjects."""
    return {name for name, chart in charts().items() if chart.SUBJECT in subjects}


def visible(page):
    """Return roughly the visible text of a page, without charts, script and tags."""
    page = re.sub(r"<style.*?</style>|<script>.*?</script>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    return " ".join(stdlib_html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.fixture(scope="module")
def text_of(example):
    """`text_of(state)` returns the text of the page of a run in that state, rendered once."""

    @cache
    def render(state):
        cut = STATES[state](example)
        return visible(html.render(cut.run, cut.records))

    return render


@pytest.mark.parametrize("state", STATES)
def test_every_state_of_a_run_renders(example, text_of, state):
    cut, text = STATES[state](example), text_of(state)
    assert "nan" not in text.split()
    assert "None" not in text.replace("None of", "").split()
    assert markdown.render(cut.run, cut.records).startswith("### zoomgrad")


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (
            "whole",
            "The untouched MNIST graph, same bits: 16.3 s to compile, ≈ 9.79 s per epoch (clang-O1 on cpython-3.13)",
        ),
        ("whole", "On mnist, clang-O1 is 8,700 times as fast as baseline on cpython-3.13 (95 % interval"),
        ("whole", "18 of 30 cells were measured: 10 skipped, 2 failed."),
        ("whole", "1 cell differs from the reference by more than promised: its time is not shown."),
        (
            "whole",
            "Reference lines, which never win: rerolled-clang-fast (without the promise of identical bits)",
        ),
        ("empty plan", "The plan of this run is empty"),
        ("nothing ran", "None of 30 cells were measured: 30 never run."),
        ("interrupted in the first block", "5 of 30 cells were measured: 2 skipped, 23 never run."),
        ("one cell", "no engine was measured alongside baseline"),
        ("one cell", "The only cell was measured."),
        ("all skipped", "None of 10 cells were measured: 10 skipped."),
        ("all failed", "None of 30 cells were measured: 30 failed."),
        ("without baseline", "no engine was measured alongside baseline"),
    ],
)
def test_the_verdict_follows_from_the_data(text_of, state, sentence):
    assert sentence in text_of(state)


def test_the_page_states_the_facts_of_the_run(whole_page):
    text = visible(whole_page)
    for said in (
        "≈ marks an epoch that was not run in full",
        "fewer than 3 processes",
        "micrograd keeps children in a set",
        "NonFiniteLoss: inf at step 31",
        "Lower the rate.",
        "--enable-optimizations --with-lto",
        "zoomgrad run --preset quick --note 'a b'",
        "0123abc",
        "1337",
        "Example CPU",
        "2.31 at step 0",
    ):
        assert said in text


def test_a_failed_cell_shows_no_time(whole_page):
    page = whole_page.split('id="workloads"')[1]
    line = re.search(r'<tr id="clang-O1/cpython-3.11/mnist">.*?</tr>', page, re.DOTALL)
    assert visible(line.group()) == "clang-O1 cpython-3.11 failed: NonFiniteLoss: inf at step 31"


def test_html_in_a_reason_is_escaped(example, whole_page):
    assert example.nasty in visible(whole_page)
    assert whole_page.count("<script") == 1
    assert "<script" not in markdown.render(example.run, example.records)


def test_the_page_fetches_nothing(whole_page):
    assert not re.search(r"""(?:src|href)=(?!["']?(?:#|data:))""", whole_page)
    assert "@import" not in whole_page
    assert not re.search(r"url\((?!#)", whole_page)


def test_rendering_is_deterministic(example, whole_page):
    assert html.render(example.run, example.records) == whole_page


def test_build_writes_pages_and_charts_beside_the_records(example, tmp_path):
    store = Store.create(example.run, under=tmp_path)
    for record in example.records:
        store.write(record)
    page = build(store)
    assert page == store.folder / "report.html"
    told = tell(store)
    assert page.read_text(encoding="utf-8") == html.page(told, html.drawings(told), downloads(told))
    assert (store.folder / "report.md").read_text(encoding="utf-8") == markdown.render(example.run, example.records)
    assert {path.stem for path in (store.folder / "charts").glob("*.svg")} == with_subject(*PAGE)


SECTIONS = ("The published table, measured again", "Break-even", "Compile time by phase", "Growth with the graph")


def test_a_section_is_shown_if_it_has_data(example, whole_page, crowded_page):
    def sections(page):
        return [section for section in SECTIONS if section in visible(page)]

    plain = example.only(lambda cell: cell.engine in ("baseline", "tuple"))
    assert sections(crowded_page) == list(SECTIONS)
    assert sections(whole_page) == list(SECTIONS[:3])
    assert sections(html.render(plain.run, plain.records)) == []


def test_ids_on_the_page_are_unique(crowded_page):
    ids = re.findall(r'\bid="([^"]+)"', crowded_page)
    assert len(ids) == len(set(ids))
    assert {"published", "break-even", "total_time", "phases", "growth-table"} <= set(ids)


def test_steep_growth_is_marked(crowded_page):
    assert len(re.findall(r'<td class="number steep">1.99<', crowded_page)) == 2


PROBE = """
<script>window.problems = []; addEventListener("error", event => problems.push(event.message));</script>
"""
ANSWER = """
<script>
document.body.dataset.answer = JSON.stringify({
  width: innerWidth,
  page: document.documentElement.scrollWidth,
  problems: problems,
  ran: window.ran || 0,
  charts: [...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect().width > 100),
  bars: [...document.querySelectorAll(".bars i")].filter(bar => bar.getBoundingClientRect().width > 0).length,
  styled: [...document.querySelectorAll(".bars i, .key i")].every(
    bar => getComputedStyle(bar).backgroundColor != "rgba(0, 0, 0, 0)"),
});
</script>
"""


def opened(page: str, folder: Path, width: int) -> dict:
    """Open a copy of the page that may run our probe, and return the probe's answer."""
    page = re.sub(r"<meta http-equiv[^>]*>", lambda _: PROBE, page, count=1).replace("</body>", f"{ANSWER}</body>")
    return framed(page, folder, width)


@in_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_the_page_whole(whole_page, tmp_path, width):
    answer = opened(whole_page, tmp_path, width)
    assert answer["problems"] == []
    assert answer["ran"] == 0
    assert answer["charts"] == [True] * len(with_subject(*PAGE))
    assert answer["width"] == width
    assert answer["page"] <= width


@in_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_the_largest_page_whole(crowded_page, tmp_path, width):
    answer = opened(crowded_page, tmp_path, width)
    assert answer["problems"] == []
    assert answer["charts"] == [True] * len(with_subject(*PAGE))
    assert answer["page"] <= width


@in_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_profiles_whole(profiled_page, tmp_path, width):
    answer = opened(profiled_page.replace("<details", "<details open"), tmp_path, width)
    assert answer["problems"] == []
    assert answer["ran"] == 0
    assert all(answer["charts"])
    assert answer["page"] <= width
    assert answer["bars"] > 50
    assert answer["styled"]


@in_browser
def test_a_browser_shows_a_flame_graph(tmp_path):
    svg = flame(folded(example_profiles.STACKS), "baseline, by scalene")
    answer = opened(f"<!doctype html><meta http-equiv=x><body>{svg}</body>", tmp_path, 1280)
    assert answer["problems"] == []
    assert answer["charts"] == [True]
