"""The offline HTML page for every state of a run: what it says, what it links to, and what it never executes."""

import base64
import hashlib
import html as stdlib_html
import re

import pytest

from tests.reports.example_profiles import NASTY
from zoomgrad.reports import build
from zoomgrad.reports.pages import html, markdown
from zoomgrad.reports.story import story

MOST_QUICK_BYTES = 100_000
MOST_BYTES = 600_000

STATES = {
    "whole": lambda example: example,
    "empty plan": lambda example: example.only(lambda cell: False),
    "nothing ran": lambda example: example.interrupted(0),
    "interrupted in the first block": lambda example: example.interrupted(7),
    "all skipped": lambda example: example.only(lambda cell: cell.interpreter == "pypy-3.9"),
    "all failed": lambda example: example.mapped(
        lambda record: example.stopped(record.cell, record.block, "failed", "ValueError: no", "Mend it.")
    ),
    "without baseline": lambda example: example.only(lambda cell: cell.engine != "baseline"),
    "without figures": lambda example: example.only(lambda cell: cell.engine == "tuple").mapped(
        lambda record: record.model_copy(update={"peak_bytes": 0})
    ),
}
SENTENCES = {
    "whole": ("22 of 36 cells measured.", "Lower the rate.", "zoomgrad run --preset quick --note 'a b'", "0123abc"),
    "empty plan": ("The plan of this run is empty",),
    "nothing ran": ("0 of 36 cells measured.", "36 cells: not run"),
    "interrupted in the first block": ("5 of 36 cells measured.",),
    "all skipped": ("0 of 12 cells measured.", "12 cells: skipped"),
    "all failed": ("36 cells: failed", "Mend it."),
}


def visible(page):
    """Return roughly the visible text of a page, without charts, script and tags."""
    page = re.sub(r"<style.*?</style>|<script>.*?</script>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    return " ".join(stdlib_html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("state", STATES)
def test_every_state_of_a_run_renders_and_its_sentences_follow_from_the_data(example, state):
    cut = STATES[state](example)
    text = visible(html.page(story(cut.run, cut.records)))
    assert [sentence for sentence in SENTENCES.get(state, ()) if sentence not in text] == []
    assert "nan" not in text.split()
    assert "None" not in text.split()
    assert markdown.page(story(cut.run, cut.records)).startswith("### ")


def test_a_sentence_is_said_once(quick):
    """Also not once in a section and once on the first screen."""
    sentences = re.findall(r"[A-Z][^.<>]{40,}\.", re.sub(r"<[^>]+>", "\n", html.page(story(quick.run, quick.records))))
    assert [one for one in set(sentences) if sentences.count(one) > 1 and "every value" not in one] == []


HOSTILE = "x</script><script>window.ran=1</script>\"'|`"


def test_hostile_text_stays_text(example, whole_page):
    """Names are checked on reading; machines, commands, reasons and lines of source may hold anything."""
    assert example.nasty in visible(whole_page)
    assert NASTY in visible(whole_page)
    assert "<script" not in markdown.page(story(example.run, example.records))
    run = example.run.model_copy(update={"machine": {"processor": HOSTILE, "system": "\"><img src=x onerror='1'>"}})
    page = html.page(story(run, example.records))
    assert page.count("<script") == page.count("</script") == whole_page.count("<script") == 1
    assert "<img" not in page
    assert stdlib_html.escape("<img src=x") in page


def test_build_writes_pages_and_charts_beside_the_records(example, tmp_path):
    store = example.stored(tmp_path)
    page = build.build(store)
    assert page == store.folder / "report.html"
    assert (store.folder / "report.md").read_text(encoding="utf-8") == markdown.page(
        story(example.run, example.records)
    )
    charts = {path.stem for path in (store.folder / "charts").glob("*.svg")}
    assert charts == {"compile_against_epoch", "total_time"}


def test_a_quick_runs_page_is_small_and_asks_ten_questions_at_most(quick):
    page = html.page(story(quick.run, quick.records))
    assert len(page.encode()) <= MOST_QUICK_BYTES
    assert page.count('class="question"') <= 10
    assert page.count('class="question" id="epochs" open') == page.count('class="question" id="ideas" open') == 1
    assert page.count('<details class="question"') - page.count(" open>") >= 5


def test_the_page_is_described_for_those_who_share_it(quick):
    page = html.page(story(quick.run, quick.records))
    (title,) = re.findall(r'<meta property="og:title" content="([^"]+)">', page)
    headline = r"[\w-]+ compiles mnist in [\d.]+\u00a0ms and runs an epoch in .* times as fast .*"
    assert re.fullmatch(f"zoomgrad: {headline}", title)
    assert re.search(r'"og:description" content="All \d+ cells measured\. All results are correct\.', page)


def test_the_page_loads_nothing(full_page):
    assert len(full_page.encode()) < MOST_BYTES
    assert re.findall(r"""\b(?:src|srcset|data|poster|action|xlink:href)=["']?([^"'\s>]*)""", full_page) == []
    links = re.findall(r'<(?:link|image|use)\b[^>]*\bhref="([^"]*)"', full_page)
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"@import|url\((?!#)", full_page)


def test_figures_do_not_break_before_their_units(full_page):
    body = re.sub(r"<title>[^<]*", "", full_page.split("<body>")[1].split("<script>")[0])
    texts = " ".join(re.findall(r">([^<]*)<", body))
    assert re.findall(r".{20}\d (?:ns|µs|ms|s|min|h|kB|MB|%)(?!\w)", texts) == []


def test_the_only_script_allowed_is_ours(full_page):
    (script,) = re.findall(r"<script>(.*?)</script>", full_page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', full_page).group(1)
    assert "default-src 'none'" in policy
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_every_link_within_the_page_has_its_target(full_page):
    ids = re.findall(r'\bid="([^"]+)"', full_page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', full_page)) <= set(ids)
