"""The page in a real browser: whole at any width, in light and dark, on paper, by keyboard, and with its controls."""

import re
from importlib import resources
from pathlib import Path

import pytest
from matplotlib.image import imread

from tests.reports import example_profiles
from tests.reports.browser import DARK, answers, in_browser, photographed, printed
from zoomgrad.reports.pages.flame_graph import flame
from zoomgrad.reports.profiling.stacks import folded
from zoomgrad.results.store import BASELINE_RUNS, RunFile

pytestmark = in_browser
SCREENSHOTS = Path(__file__).parents[2] / ".zoomgrad" / "screenshots"
"""CI uploads this folder as an artefact."""
LOOKS = {"light": (1280, ()), "dark": (1280, (DARK,)), "phone": (390, ())}
LATER = pytest.mark.exhaustive

SHOWN = """
  const all = what => [...document.querySelectorAll(what)];
  const levels = all("h1, h2, h3, h4").map(one => Number(one.tagName[1]));
  const reach = all("a[href], button, input, select, summary, [tabindex]").filter(one => one.checkVisibility());
  const unseen = reach.filter(one => {
    one.focus({ preventScroll: true, focusVisible: true });
    return document.activeElement === one && getComputedStyle(one).outlineStyle === "none";
  });
  return {
    problems,
    ran: window.ran || 0,
    fits: innerWidth === WIDTH && document.documentElement.scrollWidth <= WIDTH,
    small: all("svg").filter(one => one.checkVisibility() && one.getBoundingClientRect().width <= 100).length,
    colourless: all(".bars i, .key i").filter(
      one => getComputedStyle(one).backgroundColor === "rgba(0, 0, 0, 0)").length,
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
  };
"""
WELL_SHOWN = {
    "problems": [],
    "ran": 0,
    "fits": True,
    "small": 0,
    "colourless": 0,
    "lang": "en",
    "jumps": [],
    "first": True,
    "unlabelled": 0,
    "headless": 0,
    "unreached": 0,
    "unseen": [],
    "sticky": "sticky",
}


@pytest.mark.parametrize(
    ("which", "width"), [("whole_page", 390), ("whole_page", 1280), ("full_page", 390), ("profiled_page", 1280)]
)
def test_a_browser_shows_the_page_whole(which, width, request, tmp_path):
    page = request.getfixturevalue(which).replace("<details", "<details open")
    assert answers(page, tmp_path, SHOWN.replace("WIDTH", str(width)), width) == WELL_SHOWN


def test_a_browser_shows_a_flame_graph(tmp_path):
    svg = flame(folded(example_profiles.STACKS), "baseline, by scalene")
    page = f"<!doctype html><meta http-equiv=x><body>{svg}</body>"
    act = "return [problems.length, document.querySelector('svg').getBoundingClientRect().width > 100]"
    assert answers(page, tmp_path, act) == [0, True]


AXE = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RULES = """
  for (const details of document.querySelectorAll("details")) details.open = true;
  // Rows that differ only in text and numbers are the same to every rule, and axe would take a minute for hundreds.
  const shape = row => row.outerHTML.replace(/>[^<]*</g, "><").replace(/\\d[\\d.,]*/g, "0");
  for (const body of document.querySelectorAll("tbody")) {
    const seen = {};
    for (const row of [...body.rows]) {
      seen[shape(row)] = (seen[shape(row)] ?? 0) + 1;
      if (seen[shape(row)] > 2) row.remove();
    }
  }
  const found = await axe.run({resultTypes: ["violations"]});
  return {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    passes: found.passes.length > 10,
    violations: found.violations.map(one => [one.id, one.help, one.nodes.slice(0, 5).map(node => node.target)]),
  };
"""


@pytest.mark.parametrize(
    ("which", "scheme"),
    [("whole_page", "light"), ("profiled_page", "dark"), pytest.param("full_page", "light", marks=LATER)],
)
def test_the_page_is_accessible(which, scheme, request, tmp_path):
    """By axe-core's rules for names, roles and contrast."""
    page = request.getfixturevalue(which).replace("</body>", f"<script>{AXE}</script></body>")
    found = answers(page, tmp_path, RULES, 1280, *LOOKS[scheme][1])
    assert found == {"dark": scheme == "dark", "passes": True, "violations": []}


@pytest.mark.parametrize("look", [pytest.param(look, marks=[LATER] * (look != "light")) for look in LOOKS])
def test_a_screenshot_shows_the_whole_page(look, whole_page, tmp_path):
    width, flags = LOOKS[look]
    png = SCREENSHOTS / f"whole-{look}.png"
    height = photographed(whole_page, tmp_path, png, width, *flags)
    picture = imread(png)[:, :width, :3]
    assert picture.shape[0] == height > 2000
    background = picture[2, 2].mean()
    assert background < 0.2 if look == "dark" else background > 0.9
    # Every part of the page must have content, so that no part is an empty frame.
    for part in range(0, height - 1000, 1000):
        assert picture[part : part + 1000].std() > 0.02, f"the picture is empty from pixel {part} on"


PAPER = (710, 971)
"""The smaller width and height of A4 and US letter in pixels, without the margins of `@page`."""
ON_PAPER = """
  const shown = what => [...document.querySelectorAll(what)].filter(one => one.checkVisibility());
  const name = one => `${one.tagName}: ${one.textContent.slice(0, 40)}`;
  return {
    cut: shown("svg, th, td, pre, p, dd").filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(name),
    scrolling: shown(".scroll, pre").filter(
      one => ["auto", "scroll"].includes(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth
    ).map(name),
    tall: shown("figure").filter(one => one.getBoundingClientRect().height > HEIGHT).map(one => one.id),
    fits: document.documentElement.scrollWidth <= innerWidth + 1,
    controls: shown(".controls").length,
    without_hint: shown("details:not([open]) > summary").filter(
      one => !getComputedStyle(one, "::after").content.includes("open it on the page")).map(name),
  };
"""


@pytest.mark.parametrize("which", ["full_page", "profiled_page"])
def test_print_hides_nothing(which, request, tmp_path):
    page = request.getfixturevalue(which)
    assert page.count("@media print {") == 1
    width, height = PAPER
    page = page.replace("@media print {", "@media all {")
    found = answers(page, tmp_path, ON_PAPER.replace("HEIGHT", str(height)), width)
    assert found == {"cut": [], "scrolling": [], "tall": [], "fits": True, "controls": 0, "without_hint": []}


def test_a_page_prints(whole_page, tmp_path):
    pdf = printed(whole_page, tmp_path)
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", pdf)) > 3


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


def test_filters_tooltips_and_sorting(full_page, tmp_path):
    found = answers(full_page, tmp_path, ACT)
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
