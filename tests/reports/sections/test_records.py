"""The table of every record, in Python and in a real browser: sorted, filtered, copied, and without its script."""

import base64
import csv
import hashlib
import io
import re
from dataclasses import replace
from itertools import chain

import pytest

from reports.pages import html
from reports.sections.records import every_record
from reports.story import story
from reports.text.markdown import escape
from reports.view import view
from results import units
from results.record import Cell
from tests.reports.browser import answer, dumped, framed, in_browser

HOSTILE = "=cmd()<script>window.ran=1<\\script>\"'|`"
FORMULAS = ("=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", " =1", 'a\nb,"c"; d', "it's")
"""Reasons that a spreadsheet would run as formulas, or that CSV must quote."""


def rows(example):
    """Return the rows as dicts from column to datum."""
    table = every_record(view(example.run, example.records))
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def rendered(example):
    """Return the page without its charts, which these tests do not need and which take a second."""
    return html.page(story(example.run, example.records), ())


def row_of(example, cell, block=0):
    wanted = (cell.engine, cell.interpreter, cell.workload, str(block))
    keys = ("engine", "interpreter", "workload", "block")
    return next(row for row in rows(example) if tuple(row[key].text for key in keys) == wanted)


def cell_of(key):
    engine, interpreter, workload = key.split("/")
    return Cell(engine=engine, interpreter=interpreter, workload=workload)


def test_every_record_of_the_plan_is_a_row_in_the_plans_order(example):
    found = [
        (row["engine"].text, row["interpreter"].text, row["workload"].text, row["block"].text) for row in rows(example)
    ]
    order = {cell: index for index, cell in enumerate(example.run.cells)}
    records = sorted(example.records, key=lambda record: (order[record.cell], record.block))
    assert found == [(*record.cell.key.split("/"), str(record.block)) for record in records]


def test_records_outside_the_plan_are_left_out(example):
    cut = example.only(lambda cell: cell.workload == "xor")
    assert len(rows(replace(cut, records=example.records))) == len(cut.records)


def test_a_run_without_records_has_no_table(example):
    assert every_record(view(example.run, [])) is None
    page = rendered(replace(example, records=()))
    assert "Every record" not in page
    assert "<script" not in page
    assert "script-src 'none'" in page


def test_a_row_has_the_records_figures_as_text_and_as_numbers(example):
    cell = cell_of("clang-O1/cpython-3.13/mnist")
    record = next(record for record in example.records if record.cell == cell and record.block == 1)
    row = row_of(example, cell, 1)
    mean = sum(record.step_seconds) / 3
    assert float(row["step_seconds"].value) == pytest.approx(mean, rel=1e-15)
    assert row["step_seconds"].text == units.duration(mean)
    assert float(row["compile_seconds"].value) == sum(record.phases.values())
    assert row["phase_compile_seconds"].text == "15.2 s"
    assert (row["phase_load_seconds"].text, row["phase_load_seconds"].value) == (units.ABSENT, "")
    assert int(row["peak_bytes"].value) == record.peak_bytes
    assert int(row["steps_per_value"].value) == record.steps_per_value
    assert (row["bits"].text, row["worst_error"].value) == ("identical", "0.0")
    assert row["reason"].text == ""


def test_a_row_has_the_ready_time_or_the_reason_why_there_is_none(example):
    cell = cell_of("tuple/cpython-3.13/mnist")
    ready = row_of(example.with_records(cell, example.measured(cell, 0, ready_seconds=0.25)), cell)
    assert (ready["ready_seconds"].text, ready["ready_seconds"].value) == ("250 ms", "0.25")
    assert ready["ready_cpu_seconds"].text == units.ABSENT
    absent = row_of(example.with_records(cell, example.measured(cell, 0, ready_absence="too slow")), cell)
    assert (absent["ready_seconds"].text, absent["reason"].text) == (units.ABSENT, "no ready time: too slow")


def test_compile_time_is_zero_without_compiling_and_absent_if_loaded(example):
    assert row_of(example, cell_of("tuple/cpython-3.13/mnist"))["compile_seconds"].value == "0.0"
    cell = cell_of("clang-O1/cpython-3.13/mnist")
    loaded = example.with_records(cell, example.measured(cell, 0, phases={}, tape_rows=7))
    assert row_of(loaded, cell)["compile_seconds"].text == units.ABSENT


def test_an_error_within_its_bound_is_not_called_different(example):
    assert row_of(example, cell_of("baseline/cpython-3.13/mnist"))["bits"].text == "within 1e-09"
    wrong = row_of(example, cell_of("local-grads/cpython-3.13/xor"))
    assert (wrong["status"].text, wrong["bits"].text, wrong["worst_error"].value) == ("failed", "different", "0.25")
    assert row_of(example, cell_of("tuple/pypy-3.9/mnist"))["bits"].text == units.ABSENT


def test_a_measured_block_of_a_cell_that_failed_shows_no_figure(example):
    """A flaky engine has no speed in this table, as in the others."""
    cell = cell_of("tuple/cpython-3.13/mnist")
    blocks = (example.measured(cell, 0), example.stopped(cell, 1, "failed", "crashed"))
    row = row_of(example.with_records(cell, *blocks), cell)
    assert (row["status"].text, row["step_seconds"].text, row["peak_bytes"].text) == ("measured", "–", "–")
    assert row["reason"].text == "not shown: crashed (in 1 of 2 blocks)"


def test_python_and_javascript_can_read_an_infinite_error(example):
    cell = cell_of("baseline/cpython-3.13/mnist")
    record = example.measured(cell, 0)
    proof = record.proof.model_copy(update={"worst_error": float("inf")})
    value = row_of(example.with_records(cell, record.model_copy(update={"proof": proof})), cell)["worst_error"].value
    assert value == "Infinity"
    assert float(value) == float("inf")


def test_the_only_script_allowed_is_ours(example):
    page = rendered(example)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert "default-src 'none'" in policy
    assert f"script-src '{digest(script)}';" in policy


def test_column_names_are_unique(example):
    names = [column.name for column in every_record(view(example.run, example.records)).columns]
    assert len(names) == len(set(names))


PROBE = """
window.problems = [];
addEventListener("error", event => problems.push(event.message));
addEventListener("unhandledrejection", event => problems.push(String(event.reason)));
addEventListener("securitypolicyviolation", event => problems.push("policy: " + event.violatedDirective));
console.error = (...all) => problems.push(all.join(" "));
window.copied = [];
"""
TOOLS = """
const records = document.querySelector(".records");
records.open = true;
const headings = [...records.querySelectorAll("thead th")];
const heading = name => headings.find(one => one.dataset.name == name);
const press = name => heading(name).querySelector("button").click();
const filter = text => {
  const field = records.querySelector("input");
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
const count = () => records.querySelector("[data-said=count]").textContent;
const rows = () => [...records.querySelectorAll("tbody tr")].filter(row => row.getClientRects().length);
const texts = () => rows().map(row => [...row.cells].map(cell => cell.textContent.trim()));
const column = name => rows().map(row => row.cells[headings.indexOf(heading(name))].dataset.v);
const clipboard = value => Object.defineProperty(navigator, "clipboard", { value, configurable: true });
const copy = async format => {
  clipboard({ writeText: async text => { copied.push(text); } });
  records.querySelector(`[data-copy=${format}]`).click();
  await new Promise(done => setTimeout(done, 50));
  return copied.pop();
};
(async () => {
  const given = await (async () => { ACT })();
  document.body.dataset.answer = JSON.stringify({ problems, ran: window.ran || 0, ...given });
})();
"""


def digest(script):
    """Return a script's hash as a Content-Security-Policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def answers(page, folder, act, width=None):
    """Run `act`, the body of an async function, on the page and return its result.

    The page keeps its policy, which additionally allows our probes.
    """
    tools = TOOLS.replace("ACT", act)
    ours = " ".join(f"'{digest(script)}'" for script in (PROBE, tools))
    page = re.sub(r"script-src ([^;]*);", lambda found: f"script-src {found[1]} {ours};", page, count=1)
    page = page.replace('<link rel="icon"', f'<script>{PROBE}</script><link rel="icon"', 1)
    page = page.replace("</body>", f"<script>{tools}</script></body>")
    if width:
        return framed(page, folder, width)
    (folder / "page.html").write_text(page, encoding="utf-8")
    return answer(dumped(folder / "page.html"))


@pytest.fixture(scope="module")
def page(example):
    return rendered(example)


@pytest.fixture(scope="module")
def hostile(example):
    """A run with the worst reasons that the schema allows, and with an engine name that it would not allow."""
    cell = Cell.model_construct(engine=HOSTILE, interpreter="cpython-3.13", workload="mnist")
    run = example.run.model_copy(update={"cells": (cell, *example.run.cells[:3])})
    mean = [example.stopped(cell, block, "failed", reason) for block, reason in enumerate((*FORMULAS, example.nasty))]
    return replace(example, run=run, records=(*mean, *example.records))


@in_browser
def test_a_heading_sorts_by_number_not_by_text(example, page, tmp_path):
    found = answers(
        page,
        tmp_path,
        """
        const before = texts();
        const states = [];
        for (let press_ = 0; press_ < 3; press_++) {
          press("step_seconds");
          states.push([heading("step_seconds").getAttribute("aria-sort"), column("step_seconds")]);
        }
        const after = texts();
        press("step_seconds");
        press("engine");
        const sorted = headings.filter(one => one.hasAttribute("aria-sort")).map(one => one.dataset.name);
        return { before, after, states, sorted, engines: texts().map(row => row[0]) };
        """,
    )
    assert (found["problems"], found["ran"]) == ([], 0)
    values = [float(row["step_seconds"].value) for row in rows(example) if row["step_seconds"].value]
    (up, ascending), (down, descending), (none, unsorted) = found["states"]
    absent = [""] * (len(ascending) - len(values))
    assert (up, down, none) == ("ascending", "descending", None)
    assert [float(value) for value in ascending if value] == sorted(values)
    assert [float(value) for value in descending if value] == sorted(values, reverse=True)
    assert absent
    assert ascending[len(values) :] == descending[len(values) :] == absent
    assert unsorted == [row["step_seconds"].value for row in rows(example)]
    assert found["after"] == found["before"]
    assert found["sorted"] == ["engine"]
    assert found["engines"] == sorted(found["engines"], key=str.lower)


@in_browser
def test_a_filter_hides_rows_and_counts_the_rest(example, page, tmp_path):
    found = answers(
        page,
        tmp_path,
        """
        const states = [];
        for (const text of ["", "CLANG", "clang-o1 xor", "skipped", "no such text", ""]) {
          filter(text);
          states.push([count(), texts()]);
        }
        const status = records.querySelector("[data-said=count]");
        return { states, live: status.getAttribute("aria-live"),
          labelled: records.querySelector("input").labels[0].textContent.trim() };
        """,
    )
    assert found["problems"] == []
    everything = [[datum.text for datum in row.values()] for row in rows(example)]

    def holding(*words):
        return [row for row in everything if all(any(word in text.lower() for text in row) for word in words)]

    wanted = [everything, holding("clang"), holding("clang-o1", "xor"), holding("skipped"), [], everything]
    assert [texts for _, texts in found["states"]] == wanted
    assert len({len(shown) for shown in wanted}) == 5
    assert [count for count, _ in found["states"]] == [f"{len(shown)} of {len(everything)} shown" for shown in wanted]
    assert (found["live"], found["labelled"]) == ("polite", "Filter")


@in_browser
def test_copying_takes_the_rows_shown(example, page, tmp_path):
    found = answers(
        page,
        tmp_path,
        """
        filter("mnist cpython-3.13");
        press("step_seconds");
        return { names: headings.map(one => one.dataset.name), shown: texts(), steps: column("step_seconds"),
          csv: await copy("csv"), markdown: await copy("markdown"),
          said: records.querySelector("[data-said=copied]").textContent };
        """,
    )
    assert found["problems"] == []
    header, *copied = csv.reader(io.StringIO(found["csv"], newline=""))
    assert header == found["names"]
    by_text = {tuple(datum.text for datum in row.values()): row for row in rows(example)}
    columns = every_record(view(example.run, example.records)).columns
    wanted = [
        [
            datum.value if column.numeric else datum.text
            for column, datum in zip(columns, by_text[tuple(shown)].values(), strict=True)
        ]
        for shown in found["shown"]
    ]
    assert copied == wanted
    assert [line[header.index("step_seconds")] for line in copied] == found["steps"]
    heads, rules, *lines = found["markdown"].splitlines()
    assert heads.count("|") == rules.count("|") == len(header) + 1
    assert lines == [f"| {' | '.join(escape(text) for text in shown)} |" for shown in found["shown"]]
    assert found["said"] == f"Copied {len(wanted)} rows."


@in_browser
@pytest.mark.parametrize("no_clipboard", ["undefined", '{ writeText: async () => { throw new Error("denied"); } }'])
def test_without_a_clipboard_the_text_is_selected(page, tmp_path, no_clipboard):
    found = answers(
        page,
        tmp_path,
        """
        filter("clang");
        const wanted = await copy("csv");
        clipboard(NONE);
        records.querySelector("[data-copy=csv]").click();
        await new Promise(done => setTimeout(done, 50));
        const area = records.querySelector("textarea");
        const selected = area.value.slice(area.selectionStart, area.selectionEnd);
        const visible = area.getClientRects().length > 0;
        const focused = document.activeElement == area;
        filter("");
        return { wanted, selected, visible, focused, stale: area.getClientRects().length };
        """.replace("NONE", no_clipboard),
    )
    assert found["problems"] == []
    # Lines of a text area end in a line feed only.
    assert found["selected"] == found["wanted"].replace("\r\n", "\n")
    assert (found["visible"], found["focused"], found["stale"]) == (True, True, 0)


@in_browser
def test_hostile_names_stay_text(hostile, tmp_path):
    found = answers(
        rendered(hostile),
        tmp_path,
        """
        filter("=cmd()<script>");
        return { shown: texts(), inside: records.querySelectorAll("tbody script, tbody b").length,
          csv: await copy("csv"), markdown: await copy("markdown") };
        """,
    )
    assert (found["problems"], found["ran"], found["inside"]) == ([], 0, 0)
    assert [row[0] for row in found["shown"]] == [HOSTILE] * (len(FORMULAS) + 1)
    assert [row[-1] for row in found["shown"]] == [*(reason.strip() for reason in FORMULAS), hostile.nasty]
    header, *copied = csv.reader(io.StringIO(found["csv"], newline=""))
    assert {len(line) for line in copied} == {len(header)}
    assert {line[0] for line in copied} == {f"'{HOSTILE}"}
    reasons = ["'=cmd()", "'+1", "'-1", "'@SUM(A1)", "'=1", "'=1", 'a\nb,"c"; d', "it's", hostile.nasty]
    assert [line[-1] for line in copied] == reasons
    assert not [text for text in chain.from_iterable(copied) if text.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert "<" not in found["markdown"]
    assert len(found["markdown"].splitlines()) == len(copied) + 2


@in_browser
def test_the_pages_policy_allows_only_its_own_script(page, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page.replace("</main>", "<script>document.body.id = 'ran'</script></main>"), encoding="utf-8")
    document = dumped(file)
    assert '<body id="ran"' not in document
    assert '<div class="controls">' in document
    assert document.count('<button type="button">') == document.count("data-name=")


@in_browser
def test_the_page_is_complete_without_its_script(example, page, tmp_path):
    # One more byte changes the script's hash, so the policy no longer allows it.
    silent = page.replace('"use strict";', '"use strict"; ', 1)
    found = answers(
        silent,
        tmp_path,
        """
        await new Promise(done => setTimeout(done, 50));
        return { shown: texts(), headings: headings.map(one => one.textContent),
          controls: records.querySelector(".controls").getClientRects().length };
        """,
    )
    assert found["shown"] == [[datum.text for datum in row.values()] for row in rows(example)]
    assert found["headings"] == [column.heading for column in every_record(view(example.run, example.records)).columns]
    assert found["controls"] == 0
    assert found["problems"] == ["policy: script-src-elem"]


@in_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_overflows_with_every_record_open(hostile, tmp_path, width):
    found = answers(
        rendered(hostile),
        tmp_path,
        """
        clipboard(undefined);
        records.querySelector("[data-copy=csv]").click();
        await new Promise(done => setTimeout(done, 50));
        return { width: innerWidth, page: document.documentElement.scrollWidth };
        """,
        width,
    )
    assert found["problems"] == []
    assert found["width"] == width
    assert found["page"] <= width


@in_browser
def test_focusable_elements_show_their_focus(page, tmp_path):
    found = answers(
        page,
        tmp_path,
        """
        const reached = [...records.querySelectorAll("summary, input, button, .scroll")];
        const outlines = reached.map(one => {
          one.focus({ focusVisible: true });
          const style = getComputedStyle(one);
          return document.activeElement == one && style.outlineStyle == "solid" && parseFloat(style.outlineWidth) > 1;
        });
        return { outlines };
        """,
    )
    assert len(found["outlines"]) > 20
    assert all(found["outlines"])
