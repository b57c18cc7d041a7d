"""The documented example runs, the tables are complete, and the figures come from the committed run."""

import random
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


def test_the_example_trains_a_compiled_model(capsys):
    try:
        engines.load("tcc").check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    example, adam, *_ = re.findall(r"(?s)```python\n(.*?)```", (DOCS / "using.md").read_text(encoding="utf-8"))
    names = {"__name__": "__main__"}
    random.seed(1)  # the example starts from random weights
    exec(compile(example, "using.md", "exec"), names)
    loss, phases = capsys.readouterr().out.split(" ", 1)
    assert float(loss) < 0.01
    assert phases.startswith("{'trace': ")
    np = pytest.importorskip("numpy")
    program = names["program"]
    for index, parameter in enumerate(names["model"].parameters()):
        program.parameters[index] = parameter.data  # the start
    assert len(list(filter(None, adam.splitlines()))) <= 10
    exec(compile(adam, "using.md", "exec"), names)
    data = names["data"]
    outputs = np.asarray(program.predict(data[:, :1].copy()))
    assert ((outputs - data[:, 1:]) ** 2).mean() < 0.05


def test_every_public_name_is_in_the_library_s_table():
    table = (DOCS / "using.md").read_text(encoding="utf-8").partition("## Use it as a library")[2].partition("\n## ")[0]
    assert [name for name in zoomgrad.__all__ if not re.search(rf"`{name}[`(]", table)] == []


def test_every_engine_and_workload_is_in_a_table():
    from zoomgrad.harness import workloads

    page = (DOCS / "engines.md").read_text(encoding="utf-8")
    for name in (*engines.names(), *workloads.names()):
        family, _, level = name.partition("-O")
        written = f"`{name}`" if f"`{name}`" in page or not level else f"{family}-O0/-O1/-O2"
        assert written in page, name


def test_the_tables_match_the_committed_run(request):
    from zoomgrad.reports.measured.headline import PUBLISHED_WORKLOADS
    from zoomgrad.reports.pages import markdown
    from zoomgrad.reports.sections.first import SUMMARY, panels, summary
    from zoomgrad.reports.sections.published import published
    from zoomgrad.reports.view import view
    from zoomgrad.results.store import BASELINE_RUNS, RunFile

    run = RunFile(BASELINE_RUNS / "full.jsonl.xz")
    found = view(run.run, run.records())
    assert [row[0].text for row in summary(found).rows] == list(SUMMARY)
    check_generated(request, README, "summary", markdown.summary_page(found))
    at_home = [one for one in panels(found) if one.interpreter == run.run.reference_interpreter]
    sheets = [one.sheet for one in at_home if one.workload in PUBLISHED_WORKLOADS]
    check_generated(request, DOCS / "results.md", "results", markdown.sheets_page(*sheets, *published(found).sheets))


def test_the_loops_match_the_recovered_ones(request):
    """The README shows the first three loops and the number of scalar operations they came from."""
    pytest.importorskip("numpy")
    from zoomgrad import datasets
    from zoomgrad.harness import workloads
    from zoomgrad.harness.stages import Stage, text

    try:
        lines = text(engines.load("rerolled-clang"), workloads.load("mnist"), Stage.loops).splitlines()
    except datasets.Unavailable as missing:
        pytest.skip(str(missing))
    loops = [line.strip() for line in lines if re.match(r" +[012]: ", line)]
    check_generated(request, README, "loops", "```\n" + "\n".join(loops) + "\n```")
    (operations,) = re.findall(r"([\d,]+) primitives", lines[-1])
    assert f"{operations} scalar operations" in README.read_text(encoding="utf-8")
