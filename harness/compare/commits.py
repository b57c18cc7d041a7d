"""Commits by name -> their files in temporary folders. The user's checkout and its repository are only read."""

from __future__ import annotations

import contextlib
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from zoomgrad.engines.asking import NoAnswer, ask, one_line, which
from zoomgrad.harness.compare.turns import Subject
from zoomgrad.results.files import Unreadable
from zoomgrad.results.places import IS_CHECKOUT, ROOT

GIT_SECONDS = 120.0
NEEDED = "zoomgrad/engines"
"""The package that both sides import. Older commits have their engines elsewhere."""


def git(repository: Path, *arguments: str) -> str:
    """Output of a git command. Raises Unreadable."""
    program = which("git")
    if program is None:
        raise Unreadable("git is not installed, and commits can't be read without it\n  Install git.")
    # Neither the repository's hooks nor its file watcher may run: either may be any command.
    options = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]
    try:
        return ask([program, "--no-optional-locks", *options, *arguments], seconds=GIT_SECONDS, folder=repository)
    except NoAnswer as none:
        raise Unreadable(f"{repository}: git {arguments[0]} {none}\n  Check the clone with `git fsck`.") from None


def commit(name: str, repository: Path = ROOT) -> Subject:
    """Return the commit of that name: a branch, a tag, `HEAD~3`, a hash. Raises Unreadable."""
    shown = one_line(name, 80)
    if repository == ROOT and not IS_CHECKOUT:
        raise Unreadable(
            f"{shown}: not a run or an interpreter, and an installed copy of zoomgrad has no commits\n"
            "  Name two runs, or two interpreters that `zoomgrad list` prints. Commits need a checkout."
        )
    sha = ""
    with contextlib.suppress(Unreadable):
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        sha = "" if "\0" in name else git(repository, *words).strip()
    if not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        raise Unreadable(
            f"{shown}: not a run, an interpreter or a commit of this repository\n"
            "  Name two runs, two interpreters (`zoomgrad list`), or two commits, as `git log --oneline` shows them. A "
            "shallow clone lacks old commits."
        )
    if not git(repository, "ls-tree", "--name-only", sha, NEEDED):
        raise Unreadable(
            f"{shown}: this commit has no {NEEDED}: it is older than the package `zoomgrad.engines`, which both sides "
            "import\n  Name a newer commit, or run `zoomgrad compare` from a checkout of that time."
        )
    return Subject(name=shown, sha=sha)


def refuse_changes(commits: Mapping[str, Subject], repository: Path = ROOT) -> None:
    """Raise Unreadable if the checkout has uncommitted changes to a commit that is compared.

    The comparison would measure the commit without them, which is hardly what its user expects.
    """
    here = git(repository, "rev-parse", "HEAD").strip()
    changed = git(repository, "status", "--porcelain", "--untracked-files=no").splitlines()
    named = [each.name for each in commits.values() if each.sha == here]
    if changed and named:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise Unreadable(
            f"{named[-1]} is checked out with uncommitted changes, which a comparison would leave out: "
            f"{one_line(changed[0][3:], 80)}{more}\n"
            "  Commit them, or put them aside with `git stash`."
        )


@contextlib.contextmanager
def checkouts(commits: Mapping[str, Subject], repository: Path = ROOT) -> Iterator[dict[str, Path]]:
    """Unpack each commit's files in a folder of its own, named as in `commits`. Raises Unreadable if git fails."""
    with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
        made = {side: Path(folder) / side for side in commits}
        for side, path in made.items():
            packed = path.with_suffix(".tar")
            git(repository, "archive", "--format=tar", f"--output={packed}", commits[side].sha)
            with tarfile.open(packed) as files:
                files.extractall(path, filter="data")
            packed.unlink()
        yield made
