"""Commits by name, and their files, which leave no trace in the user's checkout."""

import subprocess

import pytest

from zoomgrad.harness.compare import sides as commits
from zoomgrad.results.files import Unreadable

PART = "zoomgrad/engines/__init__.py"


def git(folder, *arguments):
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "clone"
    (folder / "zoomgrad/engines").mkdir(parents=True)
    (folder / PART).write_text("first\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=first")
    (folder / PART).write_text("second\n")
    git(folder, "commit", "--quiet", "--all", "--message=second")
    return folder


def both(repository):
    return {"base": commits.commit("HEAD~1", repository), "head": commits.commit("main", repository)}


def test_both_commits_are_unpacked_and_removed(repository):
    before = git(repository, "status", "--porcelain"), sorted((repository / ".git").rglob("*"))
    with commits.placed(both(repository), repository) as sides:
        texts = {side: (one.checkout / PART).read_text() for side, one in sides.items()}
    assert texts == {"base": "first\n", "head": "second\n"}
    assert not any(one.checkout.exists() for one in sides.values())
    assert (git(repository, "status", "--porcelain"), sorted((repository / ".git").rglob("*"))) == before


@pytest.mark.parametrize("name", ["nowhere", "", "--all", "main^{tree}", "a\0b", "main\n", "x" * 5000])
def test_what_is_no_commit_is_refused_in_one_line(name, repository):
    with pytest.raises(Unreadable, match="or a commit of this repository") as refused:
        commits.commit(name, repository)
    assert len(str(refused.value).splitlines()) == 2
