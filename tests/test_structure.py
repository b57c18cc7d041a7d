"""The project fits in one head: each folder keeps its budget of lines, and has few modules.

The budgets are in pyproject.toml, [tool.budgets]. Lower a number when a folder shrinks.
"""

import shutil
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = (".py", ".rpy", ".c", ".h", ".j2", ".js")
PACKAGES = ("zoomgrad/", "engines/", "datasets/", "results/", "reports/", "harness/")
MOST_MODULES = 14
PROSE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/")
BUDGETS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["budgets"]


@pytest.fixture(scope="module")
def tracked():
    """Path -> content of each file that git tracks."""
    git = shutil.which("git")
    if not git or not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: (ROOT / name).read_bytes() for name in listed.split("\0") if (ROOT / name).is_file()}


@pytest.mark.parametrize("folder", BUDGETS["lines"])
def test_a_folder_keeps_its_budget_of_lines(folder, tracked):
    files = {name: text.count(b"\n") for name, text in tracked.items() if name.startswith(f"{folder}/")}
    lines = {name: count for name, count in files.items() if name.endswith(CODE)}
    assert 0 < sum(lines.values()) <= BUDGETS["lines"][folder], sorted(lines, key=lines.__getitem__)[-5:]


def test_prose_keeps_its_budget_of_words(tracked):
    """The page that is generated does not count."""
    words = {
        name: len(text.split())
        for name, text in tracked.items()
        if name.startswith(PROSE) and name.endswith(".md") and name != "docs/cli.md"
    }
    assert 0 < sum(words.values()) <= BUDGETS["words"], sorted(words, key=words.__getitem__)[-5:]


def test_the_tracked_tree_is_small(tracked):
    """Compress evidence that grows, and do not commit files that can be regenerated."""
    sizes = {name: len(text) for name, text in tracked.items()}
    assert 0 < sum(sizes.values()) <= BUDGETS["bytes"], sorted(sizes, key=sizes.__getitem__)[-10:]


def test_no_folder_has_too_many_modules(tracked):
    modules = Counter(str(Path(name).parent) for name in tracked if name.startswith(PACKAGES) and name.endswith(".py"))
    crowded = {folder: count for folder, count in modules.items() if count > MOST_MODULES}
    assert not crowded, "split the folder: keep modules that answer one question together"
