"""What the README promises of code, run."""

import re
from pathlib import Path

import pytest

import engines

ROOT = Path(__file__).parent.parent
FILE = ROOT / "README.md"
README = FILE.read_text(encoding="utf-8")
OPENING = re.compile(r"(?s)(<!-- opening[^>]*-->\n\n)(.*?)(\n<!-- /opening -->)")


def test_the_example_trains_a_compiled_model(capsys):
    try:
        engines.load("tcc").check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    (example,) = re.findall(r"(?s)```python\n(.*?)```", README)
    exec(compile(example, "README.md", "exec"), {"__name__": "__main__"})
    loss, phases = capsys.readouterr().out.split(" ", 1)
    assert float(loss) < 0.01
    assert phases.startswith("{'trace': 0.0, 'lower'")


def test_every_engine_and_workload_is_in_a_table():
    from harness import workloads

    for name in (*engines.names(), *workloads.names()):
        family, _, level = name.partition("-O")
        written = f"`{name}`" if f"`{name}`" in README or not level else f"{family}-O0/-O1/-O2"
        assert written in README, name


def test_the_opening_tables_are_the_reference_runs(request):
    """Nobody types a figure: `--update-golden` writes the tables anew from the committed records."""
    from reports import markdown
    from reports.opening import opening
    from reports.table import cells
    from results.store import Store

    store = Store(ROOT / "results" / "reference" / "full")
    made = markdown.opening_page(opening(cells(store.run, store.records()), store.run.engines)).strip() + "\n"
    if request.config.getoption("--update-golden"):
        FILE.write_text(OPENING.sub(lambda found: found[1] + made + found[3], README), encoding="utf-8")
    assert OPENING.search(FILE.read_text(encoding="utf-8"))[2] == made


def test_the_rendered_report_is_the_reference_runs():
    from results.store import Store

    run = Store(ROOT / "results" / "reference" / "full").run
    for page in ("index.html", "report.md"):
        assert run.id in (ROOT / "docs" / "report" / page).read_text(encoding="utf-8")
    for chart in re.findall(r"\]\((docs/[^)]*\.svg)\)", README):
        assert (ROOT / chart).is_file()
