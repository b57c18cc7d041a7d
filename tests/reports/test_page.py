"""The page in a real browser: contents, filters, tooltips, sorting, data, accessibility; its size and independence."""

import base64
import gzip
import hashlib
import html as stdlib_html
import json
import re

import pytest

from reports import build
from reports.pages import html
from results.store import BASELINE_RUNS, RunFile, Store
from tests.reports.browser import dumped, framed, in_browser

MOST_PAGE_BYTES = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def page(folder):
    """The page of the committed baseline run."""
    run = RunFile(BASELINE_RUNS / "full.jsonl.xz")
    return build.write(run, build.tell(run, elsewhere=True), folder).read_text(encoding="utf-8")


def answers(page, folder, act, width=1280):
    """Let a script act on the page, in place of the policy that forbids it, and return what it evaluates to."""
    page = re.sub(r"<meta http-equiv[^>]*>", "", page, count=1)
    say = f"<script>document.body.dataset.answer = JSON.stringify((() => {{ {act} }})())</script>"
    return framed(page.replace("</body>", f"{say}</body>"), folder, width)


def test_the_page_is_small_and_loads_nothing(page):
    assert len(page.encode()) < MOST_PAGE_BYTES
    attributes = re.findall(r"""\b(?:src|srcset|data|poster|action|xlink:href)=["']?([^"'\s>]*)""", page)
    assert attributes == []
    links = re.findall(r'<(?:link|image|use)\b[^>]*\bhref="([^"]*)"', page)
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"@import|url\((?!#)", page)


def test_the_only_script_allowed_is_ours(page):
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert "default-src 'none'" in policy
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_every_link_within_the_page_has_its_target_and_every_cell_an_anchor(page):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    links = set(re.findall(r'href="#([^"]+)"', page))
    assert links <= set(ids)
    sections = set(re.findall(r'<h2 id="([^"]+)"', page))
    assert sections <= links
    cells = RunFile(BASELINE_RUNS / "full.jsonl.xz").run.cells
    assert {cell.key for cell in cells} <= links
    assert {f"engine-{cell.engine}" for cell in cells} <= links


def test_the_data_of_the_page_is_the_runs(page, folder):
    found = {}
    for address, name in re.findall(r'href="(data[^"]+)" download="([^"]+)"', page):
        _, embedded, content = address.partition("data:application/gzip;base64,")
        packed = base64.b64decode(content) if embedded else (folder / address).read_bytes()
        found[name] = gzip.decompress(packed).decode()
    run = RunFile(BASELINE_RUNS / "full.jsonl.xz")
    names = [f"{run.run.id}-{name}.gz" for name in ("records.csv", "pyperf.json", "figures.json")]
    assert list(found) == names
    assert found[names[0]].count("\n") > len(run.run.cells)
    assert len(json.loads(found[names[1]])["benchmarks"]) == 177
    assert len(json.loads(found[names[2]])["cells"]) == len(run.run.cells)


def test_data_that_would_make_the_page_too_large_is_beside_it(example, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "MOST_EMBEDDED_BYTES", 0)
    store = Store.create(example.run, under=tmp_path)
    for record in example.records:
        store.write(record)
    page = build.build(store)
    links = re.findall(r'href="(data[^"]+)" download="', page.read_text(encoding="utf-8"))
    assert len(links) == 3
    assert all((page.parent / link).is_file() for link in links)


STRUCTURE = """
  const all = what => [...document.querySelectorAll(what)];
  const levels = all("h1, h2, h3, h4").map(one => Number(one.tagName[1]));
  const reach = all("a[href], button, input, select, summary, [tabindex]").filter(one => one.checkVisibility());
  const unseen = reach.filter(one => {
    one.focus({ preventScroll: true, focusVisible: true });
    return document.activeElement === one && getComputedStyle(one).outlineStyle === "none";
  });
  return {
    lang: document.documentElement.lang,
    jumps: levels.filter((level, index) => index && level > levels[index - 1] + 1),
    first: levels.filter(level => level === 1).length === 1 && levels[0] === 1,
    unlabelled: all("svg").filter(one => !document.getElementById(one.getAttribute("aria-labelledby"))).length
      + all("input, select").filter(one => !one.labels.length).length
      + all("nav, [role=region], [role=search]").filter(one => !one.getAttribute("aria-label")).length,
    headless: all("th:not([scope])").length + all("table").filter(one => !one.tHead).length,
    unreached: all(".controls :is(input, select, button)").filter(one => one.tabIndex < 0 || !reach.includes(one))
      .length,
    unseen: unseen.map(one => one.outerHTML.slice(0, 80)),
    sticky: getComputedStyle(document.querySelector(".bar")).position,
    wide: document.documentElement.scrollWidth,
  };
"""


@in_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_structure_and_keyboard(page, tmp_path, width):
    found = answers(page, tmp_path, STRUCTURE, width)
    assert found.pop("wide") <= width
    assert found == {
        "lang": "en",
        "jumps": [],
        "first": True,
        "unlabelled": 0,
        "headless": 0,
        "unreached": 0,
        "unseen": [],
        "sticky": "sticky",
    }


ACT = """
  const all = what => [...document.querySelectorAll(what)];
  const set = (kind, value) => {
    const filter = document.querySelector(`[data-filter=${kind}]`);
    filter.value = value;
    filter.dispatchEvent(new Event("input"));
  };
  const distinct = what => [...new Set(all(what).map(one => one.textContent))];
  const shown = "#workloads ~ details[data-workload] tbody tr:not([hidden])";
  const kept = () => ({
    engines: distinct(shown + " th"),
    marks: [...new Set(all("[data-cell]:not(.off)").map(one => one.dataset.cell.split("/")[0]))],
    columns: all("[data-workload] > table > thead th.number:not([hidden])").map(one => one.textContent),
    workloads: all("#workloads ~ details[data-workload]:not([hidden])").map(one => one.dataset.workload),
    interpreters: distinct(shown + " td.name"),
    said: document.querySelector(".controls [role=status]").textContent,
  });
  const found = { all: kept() };
  set("engine", "clang-O1");
  set("interpreter", "pypy-3.9");
  set("workload", "mnist-b1000");
  found.some = kept();
  document.querySelector(".controls button").click();
  found.again = kept();
  const mark = document.querySelector('[data-cell="rerolled-clang-sparse/cpython-3.13/mnist-b1000"]');
  const over = target => target.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  over(mark);
  found.tip = document.querySelector(".tip").textContent;
  over(document.querySelector('[id="tcc/cpython-3.13/mnist"] td.number'));
  found.figure = document.querySelector(".tip").textContent;
  const table = document.querySelector("#workloads ~ details[open] table");
  const column = [...table.tHead.rows[0].cells].findIndex(one => one.textContent === "compile");
  const heading = table.tHead.rows[0].cells[column];
  const read = () => [...table.tBodies[0].rows].map(row => row.cells[column].textContent);
  heading.querySelector("button").click();
  found.up = [heading.ariaSort ?? heading.getAttribute("aria-sort"), ...read().slice(0, 3), read().at(-1)];
  heading.querySelector("button").click();
  found.down = read()[0];
  return found;
"""


@in_browser
def test_filters_tooltips_and_sorting(page, tmp_path):
    found = answers(page, tmp_path, ACT)
    assert found["again"] == found["all"]
    assert (found["all"]["said"], len(found["all"]["workloads"])) == ("", 4)
    some = found["some"]
    assert some["workloads"] == ["mnist-b1000"]
    # A workload that is filtered out is hidden as a whole; in it, and in the other tables, rows are.
    assert all("clang-O1" in engine for engine in (*some["engines"], *some["marks"]))
    assert some["marks"]
    assert some["interpreters"] == ["pypy-3.9"]
    assert some["columns"][0] == "pypy-3.9"
    assert re.fullmatch(r"\d+ of \d+ rows shown", some["said"])
    start = "rerolled-clang-sparse/cpython-3.13/mnist-b1000: 240 ms to compile, 134 ms per epoch (124 ms to 152 ms). "
    run = RunFile(BASELINE_RUNS / "full.jsonl.xz").run
    assert found["tip"].startswith(f"{start}Median of 6 processes, identical results. Run {run.id}; ")
    assert found["tip"].endswith(f"; commit {run.commit}.")
    assert found["figure"].startswith("tcc/cpython-3.13/mnist, a step: ")
    assert found["up"][0] == "ascending"
    assert found["up"][1:3] == ["nothing", "nothing"] or found["up"][-1] == "nothing"
    assert found["down"] == "16.2 min"


@in_browser
def test_without_its_script_the_page_is_complete(page, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL), encoding="utf-8")
    shown = dumped(file)
    assert re.search(r'class="controls"[^>]* hidden', shown)
    assert "16.2 min" in shown


HOSTILE = "x</script><script>window.ran=1</script>\"'|`"


def test_hostile_text_stays_text(example):
    """Names are checked on reading; machines, commands and reasons may hold anything."""
    run = example.run.model_copy(update={"machine": {"processor": HOSTILE, "system": "\"><img src=x onerror='1'>"}})
    page = html.render(run, example.records)
    assert page.count("<script") == page.count("</script") == 1
    assert "<img" not in page
    assert stdlib_html.escape("<img src=x") in page
