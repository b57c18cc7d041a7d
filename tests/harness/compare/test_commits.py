"""Commits by name, and their files, which leave no trace in the user's checkout."""

import pytest

from zoomgrad.harness.compare import sides as commits
from zoomgrad.results.files import Unreadable


def test_both_commits_are_unpacked_and_removed(git):
    before = git("status", "--porcelain"), sorted((git.folder / ".git").rglob("*"))
    both = {"base": commits.commit("HEAD~1", git.folder), "head": commits.commit("main", git.folder)}
    file = git.file.relative_to(git.folder)
    with commits.placed(both, git.folder) as sides:
        texts = {side: (one.checkout / file).read_text() for side, one in sides.items()}
    assert texts == {"base": "first\n", "head": "second\n"}
    assert not any(one.checkout.exists() for one in sides.values())
    assert (git("status", "--porcelain"), sorted((git.folder / ".git").rglob("*"))) == before


@pytest.mark.parametrize("name", ["nowhere", "", "--all", "main^{tree}", "a\0b", "main\n", "x" * 5000])
def test_what_is_no_commit_is_refused_in_one_line(name, git):
    with pytest.raises(Unreadable, match="or a commit of this repository") as refused:
        commits.commit(name, git.folder)
    assert len(str(refused.value).splitlines()) == 2
