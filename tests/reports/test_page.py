"""The offline HTML page for every state of a run: what it says, what it links to, and what it never executes."""

import base64
import gzip
import hashlib
import html as stdlib_html
import json
import re

import pytest

from tests.reports.another import stored
from zoomgrad.reports import build
from zoomgrad.reports.charts import charts
from zoomgrad.reports.pages import html, markdown
from zoomgrad.reports.story import story
from zoomgrad.results.store import BASELINE_RUNS, RunFile

MOST_PAGE_BYTES = 1_000_000

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
SENTENCES = {
    "whole": (
        "The untouched MNIST graph, same bits: 16.3 s to compile, ≈ 9.79 s per epoch (clang-O1 on cpython-3.13)",
        "On mnist, clang-O1 is 8,700 times as fast as baseline on cpython-3.13 (95 % interval",
        "18 of 30 cells were measured: 10 skipped, 2 failed.",
        "1 cell differs from the reference by more than promised: its time is not shown.",
        "Reference lines, which never win: rerolled-clang-fast (without the promise of identical bits)",
        "≈ marks an epoch that was not run in full",
        "fewer than 3 processes",
        "micrograd keeps children in a set",
        "Lower the rate.",
        "--enable-optimizations --with-lto",
        "zoomgrad run --preset quick --note 'a b'",
        "0123abc",
        "1337",
        "Example CPU",
    ),
    "empty plan": ("The plan of this run is empty",),
    "nothing ran": ("None of 30 cells were measured: 30 never run.",),
    "interrupted in the first block": ("5 of 30 cells were measured: 2 skipped, 23 never run.",),
    "one cell": ("no engine was measured alongside baseline", "The only cell was measured."),
    "all skipped": ("None of 10 cells were measured: 10 skipped.",),
    "all failed": ("None of 30 cells were measured: 30 failed.",),
    "without baseline": ("no engine was measured alongside baseline",),
}


def visible(page):
    """Return roughly the visible text of a page, without charts, script and tags."""
    page = re.sub(r"<style.*?</style>|<script>.*?</script>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    return " ".join(stdlib_html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("state", STATES)
def test_every_state_of_a_run_renders_and_its_verdict_follows_from_the_data(example, state):
    cut = STATES[state](example)
    text = visible(html.page(story(cut.run, cut.records), ()))
    assert [sentence for sentence in SENTENCES.get(state, ()) if sentence not in text] == []
    assert "nan" not in text.split()
    assert "None" not in text.replace("None of", "").split()
    assert markdown.render(cut.run, cut.records).startswith("### zoomgrad")


def test_a_failed_cell_shows_no_time(whole_page):
    page = whole_page.split('id="workloads"')[1]
    line = re.search(r'<tr id="clang-O1/cpython-3.11/mnist">.*?</tr>', page, re.DOTALL)
    assert visible(line.group()) == "clang-O1 cpython-3.11 failed: NonFiniteLoss: inf at step 31"


HOSTILE = "x</script><script>window.ran=1</script>\"'|`"


def test_hostile_text_stays_text(example, whole_page):
    """Names are checked on reading; machines, commands and reasons may hold anything."""
    assert example.nasty in visible(whole_page)
    assert "<script" not in markdown.render(example.run, example.records)
    run = example.run.model_copy(update={"machine": {"processor": HOSTILE, "system": "\"><img src=x onerror='1'>"}})
    page = html.page(story(run, example.records), ())
    assert page.count("<script") == page.count("</script") == whole_page.count("<script") == 1
    assert "<img" not in page
    assert stdlib_html.escape("<img src=x") in page


def test_rendering_is_deterministic(example, whole_page):
    assert html.render(example.run, example.records) == whole_page


@pytest.mark.parametrize("embedded", [True, False])
def test_build_writes_pages_charts_and_data_beside_the_records(example, tmp_path, monkeypatch, embedded):
    if not embedded:
        monkeypatch.setattr(build, "MOST_EMBEDDED_BYTES", 0)
    store = build.Store(stored(example, tmp_path))
    page = build.build(store)
    assert page == store.folder / "report.html"
    assert (store.folder / "report.md").read_text(encoding="utf-8") == markdown.render(example.run, example.records)
    of_every_run = {name for name, chart in charts().items() if chart.SUBJECT in ("headline", "sequences")}
    assert {path.stem for path in (store.folder / "charts").glob("*.svg")} == of_every_run
    links = re.findall(r'href="(data[^"]+)" download="', page.read_text(encoding="utf-8"))
    assert len(links) == 3
    assert embedded or all((page.parent / link).is_file() for link in links)


def test_a_section_is_shown_if_it_has_data(example, whole_page, crowded):
    titles = ("The published table, measured again", "Break-even", "Compile time by phase", "Growth with the graph")

    def sections(page):
        return [title for title in titles if title in visible(page)]

    assert sections(html.page(story(crowded.run, crowded.records), ())) == list(titles)
    assert sections(whole_page) == list(titles[:3])
    plain = example.only(lambda cell: cell.engine in ("baseline", "tuple"))
    assert sections(html.page(story(plain.run, plain.records), ())) == []


def test_the_page_is_small_and_loads_nothing(full_page):
    assert len(full_page.encode()) < MOST_PAGE_BYTES
    assert re.findall(r"""\b(?:src|srcset|data|poster|action|xlink:href)=["']?([^"'\s>]*)""", full_page) == []
    links = re.findall(r'<(?:link|image|use)\b[^>]*\bhref="([^"]*)"', full_page)
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"@import|url\((?!#)", full_page)


def test_without_its_script_the_page_is_complete(full_page):
    shown = re.sub(r"<script>.*?</script>", "", full_page, flags=re.DOTALL)
    assert re.search(r'class="controls"[^>]* hidden', shown)
    assert re.search(r"1\d\.\d min", shown)


def test_the_only_script_allowed_is_ours(full_page):
    (script,) = re.findall(r"<script>(.*?)</script>", full_page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', full_page).group(1)
    assert "default-src 'none'" in policy
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_every_link_within_the_page_has_its_target_and_every_cell_an_anchor(full_page):
    ids = re.findall(r'\bid="([^"]+)"', full_page)
    assert len(ids) == len(set(ids))
    links = set(re.findall(r'href="#([^"]+)"', full_page))
    assert links <= set(ids)
    assert set(re.findall(r'<h2 id="([^"]+)"', full_page)) <= links
    cells = RunFile(BASELINE_RUNS / "full.jsonl.xz").run.cells
    assert {cell.key for cell in cells} <= links
    assert {f"engine-{cell.engine}" for cell in cells} <= links


def test_the_data_of_the_page_is_the_runs(full_page, full_folder):
    found = {}
    for address, name in re.findall(r'href="(data[^"]+)" download="([^"]+)"', full_page):
        _, embedded, content = address.partition("data:application/gzip;base64,")
        packed = base64.b64decode(content) if embedded else (full_folder / address).read_bytes()
        found[name] = gzip.decompress(packed).decode()
    run = RunFile(BASELINE_RUNS / "full.jsonl.xz")
    names = [f"{run.run.id}-{name}.gz" for name in ("records.csv", "pyperf.json", "figures.json")]
    assert list(found) == names
    assert found[names[0]].count("\n") > len(run.run.cells)
    assert len(json.loads(found[names[1]])["benchmarks"]) == 177
    assert len(json.loads(found[names[2]])["cells"]) == len(run.run.cells)
