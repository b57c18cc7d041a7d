"""The tables of the pages are complete, and the figures come from the committed run."""

import io
import re
from pathlib import Path

import pytest

import zoomgrad
from zoomgrad import engines

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"


def check_generated(request, file, name, text):
    """Compare the text between a file's two `name` comments with `text`; `--update-golden` replaces it."""
    marked = re.compile(rf"(?s)(<!-- {name}[^>]*-->\n)(.*?)(<!-- /{name} -->)")
    content = file.read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        content = marked.sub(lambda found: f"{found[1]}\n{text.strip()}\n\n{found[3]}", content)
        file.write_text(content, encoding="utf-8")
    assert marked.search(content)[2].strip() == text.strip()


def test_every_public_name_is_in_the_library_s_table():
    table = (DOCS / "using.md").read_text(encoding="utf-8").partition("## The library")[2].partition("\n## ")[0]
    assert [name for name in zoomgrad.__all__ if not re.search(rf"`{name}[`(]", table)] == []


def test_every_engine_and_workload_is_in_a_table():
    from zoomgrad.harness import workloads

    page = (DOCS / "engines.md").read_text(encoding="utf-8")
    for name in (*engines.names(), *workloads.names()):
        family, _, level = name.partition("-O")
        written = f"`{name}`" if f"`{name}`" in page or not level else f"{family}-O0/-O1/-O2"
        assert written in page, name


SHOWN = (
    *("rerolled-clang-sparse", "rerolled-machine-sparse", "rerolled-machine", "rerolled-clang", "handwritten"),
    *("rerolled-tcc", "clang-O1", "tcc", "native", "baseline"),
)
"""The README's engines, if the run has them."""


@pytest.fixture(scope="module")
def full():
    from zoomgrad.reports.view import view
    from zoomgrad.results.store import BASELINE_RUNS, RunFile

    run = RunFile(BASELINE_RUNS / "full.jsonl.xz")
    return view(run.run, run.records())


def test_the_texts_match_the_committed_run(request, full):
    from zoomgrad.reports.pages import markdown
    from zoomgrad.reports.sections.certainty import certainty
    from zoomgrad.reports.sections.first import coverage, headline
    from zoomgrad.reports.sections.published import published

    run, facts = full.run, full.run.workloads[full.headline_workload]
    machine = f"{run.reference_interpreter} on {run.machine['processor']}"
    claim = "".join(part for part, _ in headline(full))
    check_generated(request, README, "claim", f"{claim} ({facts.description}, batches of {facts.batch}; {machine}.)")
    check_generated(request, DOCS / "results.md", "post", markdown.sheets_page(*published(full).sheets))
    source = f"Run {run.id}, commit {run.commit}, {machine}, {run.machine['cores']} cores. {coverage(full)}"
    check_generated(request, DOCS / "results.md", "run", f"{source} {certainty(full, (), ()).answer.capitalize()}.")


def test_the_race_is_what_the_terminal_shows(request):
    from rich.console import Console

    from zoomgrad.reports.pages.terminal import sheet_table
    from zoomgrad.reports.sections.first import panels
    from zoomgrad.reports.view import view
    from zoomgrad.results.store import BASELINE_RUNS, RunFile

    run = RunFile(BASELINE_RUNS / "smoke.jsonl.xz")
    sheet = next(one.sheet for one in panels(view(run.run, run.records())) if one.workload == "xor")
    console = Console(width=90, record=True, file=io.StringIO())
    console.print(sheet_table(sheet.title, sheet))
    lines = "\n".join(line.rstrip() for line in console.export_text().splitlines())
    check_generated(request, README, "race", f"```\n{lines}\n```")


def test_the_charts_match_the_committed_run(request, full):
    """Numbers may differ in their last digit, as between processors."""
    from zoomgrad.reports.charts.race import race
    from zoomgrad.reports.plot import standalone
    from zoomgrad.reports.sections.epochs import epochs
    from zoomgrad.reports.sections.first import panels

    of_first_screen = {
        one.workload: [line.figures[1].text for line in one.lines]
        for one in panels(full)
        if one.interpreter == full.run.reference_interpreter
    }
    drawings = [epochs(full).charts[0]]
    for name, workload, names in (
        ("race", "mnist", SHOWN),
        *((workload, workload, of_first_screen[workload]) for workload in ("mnist", "mnist-b1000")),
    ):
        rows = full.table[(full.table["workload"] == workload) & full.table["engine"].isin(names)]
        rows = rows[(rows["interpreter"] == full.run.reference_interpreter) & rows["epoch_seconds"].notna()]
        drawings.append(race(name, rows, full.ranked(rows).index))
    for drawing in drawings:
        file, made = DOCS / "charts" / f"{drawing.name}.svg", standalone(drawing)
        if request.config.getoption("--update-golden"):
            file.write_text(made, encoding="utf-8")
        # An odd place holds a number, so what lies between numbers must be equal.
        old, new = (re.split(r"(-?\d*\.?\d+)", text) for text in (file.read_text(encoding="utf-8"), made))
        assert old[::2] == new[::2]
        assert [float(n) for n in old[1::2]] == pytest.approx([float(n) for n in new[1::2]], rel=0, abs=0.11)
