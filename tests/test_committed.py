"""What is committed of the baseline run, made again: docs/report, byte for byte.

Nobody types a figure: `pytest tests/test_committed.py --update-golden` writes them anew.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from reports import build
from results.store import BASELINE_RUNS, RunFile

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "docs" / "report"

MOST_TRACKED_BYTES = 4_000_000


@pytest.fixture(scope="module")
def run():
    return RunFile(BASELINE_RUNS / "full.jsonl.xz")


@pytest.fixture(scope="module")
def made(run, tmp_path_factory):
    """The report's files but for the page, which CI makes and keeps, by their paths."""
    folder = tmp_path_factory.mktemp("report")
    build.write(run, build.tell(run, elsewhere=True), folder).unlink()
    return files(folder)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_committed_report_is_the_baseline_runs(made, request):
    if request.config.getoption("--update-golden"):
        shutil.rmtree(REPORT)
        for name, content in made.items():
            (REPORT / name).parent.mkdir(parents=True, exist_ok=True)
            (REPORT / name).write_bytes(content)
    committed = files(REPORT)
    assert list(committed) == list(made)
    assert [name for name in made if committed[name] != made[name]] == []


def test_what_is_tracked_is_small():
    """Evidence that grows belongs into a compressed file, and what can be made again is no file of ours."""
    git = shutil.which("git")
    if not git or not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git's")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sizes = {name: (ROOT / name).stat().st_size for name in listed.split("\0") if (ROOT / name).is_file()}
    largest = sorted(sizes, key=sizes.__getitem__)[-10:]
    assert sum(sizes.values()) <= MOST_TRACKED_BYTES, f"the largest: {largest}"
