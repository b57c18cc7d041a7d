"""The page in a real browser: whole at any width, in light and dark, on paper, by keyboard, and with its tabs."""

import re
from importlib import resources

import pytest

from tests.reports.browser import DARK, answers, in_browser
from zoomgrad.reports.measured.races import race
from zoomgrad.reports.pages import html
from zoomgrad.reports.sections.history import history

pytestmark = in_browser


@pytest.fixture(scope="module")
def history_page(example):
    runs = [example.later(day, tuple=0.5 if day >= 4 else 1.0) for day in range(1, 6)]
    return html.history_page(history([race(one.run, one.records) for one in runs]))


SHOWN = """
  for (const details of document.querySelectorAll("details")) details.open = true;
  const all = what => [...document.querySelectorAll(what)];
  const shown = what => all(what).filter(one => one.checkVisibility());
  const reach = shown("a[href], button, input, summary, [tabindex]").filter(one => !one.closest("[inert]"));
  const outlined = one => getComputedStyle(one).outlineStyle !== "none";
  const unseen = reach.filter(one => {
    one.focus({ preventScroll: true, focusVisible: true });
    return document.activeElement === one && !outlined(one) && !(one.labels && outlined(one.labels[0]));
  });
  const name = one => `${one.tagName}: ${one.textContent.slice(0, 40)}`;
  return {
    problems,
    ran: window.ran || 0,
    wide: innerWidth !== WIDTH || document.documentElement.scrollWidth > WIDTH,
    cut: shown("p, h1, h2, h3, li, summary span, label, footer, figure").filter(
      one => one.getBoundingClientRect().right > innerWidth + 1 || one.scrollWidth > one.clientWidth + 1
        && getComputedStyle(one).display !== "inline").map(name),
    covered: shown("td, th").filter(one => one.scrollWidth > one.clientWidth + 1).map(name),
    small: shown("svg").filter(one => one.getBoundingClientRect().width <= 100).length,
    alike: shown(".bar:has(.s1)").filter(
      one => new Set([...one.children].map(part => getComputedStyle(part).backgroundColor)).size < 8).length,
    unlabelled: all("svg").filter(one => !one.getAttribute("aria-label") && !one.ariaHidden).length
      + all("[role=region], [role=group], section").filter(one => !one.getAttribute("aria-label")).length,
    headless: all("th:not([scope])").length + all("table").filter(one => !one.tHead).length,
    unseen: unseen.map(one => one.outerHTML.slice(0, 80)),
  };
"""
"""A script that looks for defects of the page; each of its answers is empty, 0 or false on a page without them."""


@pytest.mark.parametrize(("which", "width"), [("whole_page", 1400), ("full_page", 400), ("history_page", 400)])
def test_a_browser_shows_the_page_whole(which, width, request, tmp_path):
    page = request.getfixturevalue(which)
    found = answers(page, tmp_path, SHOWN.replace("WIDTH", str(width)), width)
    assert {name: value for name, value in found.items() if value} == {}


FIRST = """
  const seen = what => [...document.querySelectorAll(what)].filter(
    one => one.checkVisibility() && one.getBoundingClientRect().bottom <= HEIGHT);
  return {
    headline: seen("h1").length,
    fastest: seen(".ranked th[scope=row] b").map(one => one.textContent).slice(0, 2),
    rows: seen(".ranked tbody").length,
    charts: seen("figure svg").length,
  };
"""


@pytest.mark.parametrize(("width", "height", "rows", "charts"), [(1400, 900, 15, 1), (400, 800, 10, 0)])
def test_the_first_screen_answers(full_page, tmp_path, width, height, rows, charts):
    seen = answers(full_page, tmp_path, FIRST.replace("HEIGHT", str(height)), width)
    assert (seen["headline"], seen["charts"]) == (1, charts)
    assert seen["fastest"] == ["rerolled-machine-sparse", "rerolled-clang-sparse"]
    assert seen["rows"] >= rows


ACT = """
  const all = what => [...document.querySelectorAll(what)].filter(one => one.checkVisibility());
  const labels = () => all(".tabs > input:checked + label").map(one => one.textContent);
  const table = () => all(".ranked")[0];
  const read = column => [...table().tBodies].map(body => body.rows[0].cells[column].innerText.trim());
  const found = { labels: labels(), order: read(3).slice(0, 3) };
  all("label").find(one => one.textContent === "digits").click();
  all("label").find(one => one.textContent === "pypy-3.9").click();
  found.then = labels();
  found.panels = all(".first > div > .scroll > .ranked").length;
  const heading = table().tHead.rows[0].cells[2];
  heading.querySelector("button").click();
  found.up = [heading.getAttribute("aria-sort"), ...read(2).slice(0, 2)];
  heading.querySelector("button").click();
  found.down = [heading.getAttribute("aria-sort"), read(2)[0]];
  const body = table().tBodies[0];
  found.closed = body.querySelector(".values").checkVisibility();
  body.querySelector("summary").click();
  await new Promise(resolve => setTimeout(resolve, 50));
  found.values = [body.querySelector(".values").checkVisibility(), body.querySelector(".values p").innerText];
  location.hash = "#machine";
  await new Promise(resolve => setTimeout(resolve, 50));
  found.open = document.getElementById("machine").open;
  return found;
"""


def test_tabs_sorting_rows_and_links(full_page, tmp_path):
    found = answers(full_page, tmp_path, ACT.replace("\\u00a0", " "), 1400)
    plain = {key: [text.replace("\u00a0", " ") if isinstance(text, str) else text for text in value]
             for key, value in found.items() if isinstance(value, list)}  # fmt: skip
    assert plain["labels"] == ["mnist", "cpython-3.13"]
    assert all(re.fullmatch(r"(≈ )?[\d.]+ ms", text) for text in plain["order"])
    assert plain["then"] == ["digits", "pypy-3.9"]
    assert found["panels"] == 1
    assert plain["up"] == ["ascending", "none", "none"]
    assert plain["down"][0] == "descending"
    assert re.fullmatch(r"[\d.]+ s", plain["down"][1])
    assert (found["closed"], found["values"][0], found["open"]) == (False, True, True)
    assert re.fullmatch(r"\d processes, .* a step; .* an epoch", plain["values"][1])


def test_without_its_script_the_page_has_its_tabs_and_values(full_page, tmp_path):
    page = re.sub(r"<script>.*?</script>", "", full_page, flags=re.DOTALL)
    act = """
      const shown = () => [...document.querySelectorAll(".ranked")].filter(one => one.checkVisibility());
      const before = shown()[0];
      document.querySelector("label[for=w2]").click();
      const after = shown();
      after[0].querySelector("details").open = true;
      return [after.length, before !== after[0], after[0].querySelector(".values").checkVisibility()];
    """
    assert answers(page, tmp_path, act, 1400) == [1, True, True]


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


@pytest.mark.parametrize(("which", "flags"), [("whole_page", ()), ("whole_page", (DARK,)), ("history_page", ())])
def test_the_page_is_accessible(which, flags, request, tmp_path):
    """By axe-core's rules for names, roles and contrast."""
    page = request.getfixturevalue(which).replace("</body>", f"<script>{AXE}</script></body>")
    found = answers(page, tmp_path, RULES, 1400, *flags)
    assert found == {"dark": bool(flags), "passes": True, "violations": []}


PAPER = 710
"""The smaller width of A4 and US letter in pixels, without margins."""
ON_PAPER = """
  const shown = what => [...document.querySelectorAll(what)].filter(one => one.checkVisibility());
  return {
    cut: shown("svg, th, td, p, li").filter(one => one.getBoundingClientRect().right > innerWidth + 1).length,
    without_hint: shown("details.question:not([open]) > summary span").filter(
      one => !getComputedStyle(one, "::after").content.includes("open it on the page")).length,
  };
"""


def test_print_hides_nothing(full_page, tmp_path):
    page = full_page.replace("@media print {", "@media all {")
    assert page != full_page
    assert answers(page, tmp_path, ON_PAPER, PAPER) == {"cut": 0, "without_hint": 0}
