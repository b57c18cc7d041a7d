"""docs/report matches the baseline run's report.

`pytest tests/test_committed.py --update-golden` regenerates docs/report, so no figure is typed by hand.
"""

import re
import shutil
from pathlib import Path

import pytest

from zoomgrad.reports import build
from zoomgrad.results.store import BASELINE_RUNS, RunFile

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "docs" / "report"


@pytest.fixture(scope="module")
def run():
    return RunFile(BASELINE_RUNS / "full.jsonl.xz")


@pytest.fixture(scope="module")
def made(run, tmp_path_factory):
    """Path -> content of the report's Markdown, and of the charts that a page shows. CI builds and keeps the HTML."""
    folder = tmp_path_factory.mktemp("report")
    build.write(run, build.tell(run, elsewhere=True), folder).unlink()
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    shown = {link for page in pages for link in re.findall(r"\w+\.svg", page.read_text(encoding="utf-8"))}
    return {
        name: content for name, content in files(folder).items() if name.endswith(".md") or Path(name).name in shown
    }


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_committed_report_matches_the_baseline_run(made, request):
    if request.config.getoption("--update-golden"):
        shutil.rmtree(REPORT)
        for name, content in made.items():
            (REPORT / name).parent.mkdir(parents=True, exist_ok=True)
            (REPORT / name).write_bytes(content)
    committed = files(REPORT)
    assert list(committed) == list(made)
    assert [name for name in made if not same(name, committed[name], made[name])] == []


def same(name, committed, made):
    """Whether the bytes are equal. In charts, coordinates may differ in their last digit, as between processors."""
    if not name.endswith(".svg"):
        return committed == made
    # An odd place holds a number, so what lies between numbers must be equal.
    one, other = (re.split(r"(-?\d*\.?\d+)", text.decode()) for text in (committed, made))
    return one[::2] == other[::2] and [float(n) for n in one[1::2]] == pytest.approx(
        [float(n) for n in other[1::2]], rel=0, abs=0.11
    )


def test_only_the_last_digit_of_a_coordinate_may_differ():
    before = b'<path d="M 365.2 324.8 Q -1.7 -2.1 -3.5 -4.4" class="s34"/>'
    assert same("chart.svg", before, b'<path d="M 365.3 324.8 Q -1.7 -2.2 -3.5 -4.4" class="s34"/>')
    assert not same("chart.svg", before, b'<path d="M 365.4 324.8 Q -1.7 -2.1 -3.5 -4.4" class="s34"/>')
    assert not same("chart.svg", before, b'<path d="M 365.2 324.8 Q -1.7 -2.1 -3.5 -4.4" class="s35"/>')
    assert not same("report.md", b"365.21", b"365.22")
