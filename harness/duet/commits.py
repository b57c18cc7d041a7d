"""Commits by name -> worktrees below our own folder, removed afterwards.

The user's checkout is only read. Git notes a worktree in the repository's `.git/worktrees` and forgets it when the
worktree is removed. A duet that was killed leaves its worktrees behind; the next one removes them.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from engines.asking import NoAnswer, ask, one_line, which
from results.duet.blocks import Commit
from results.files import Unreadable
from results.places import IS_CHECKOUT, ROOT, STATE

WORKTREES = STATE / "duets"

GIT_SECONDS = 120.0
NEEDED = ("engines/__init__.py", "harness/workloads/__init__.py", "datasets/__init__.py")
"""What the players import. Commits that lack it are older than the first engines."""


def git(repository: Path, *arguments: str) -> str:
    """Output of a git command. Raises NoAnswer, and Unreadable where git is not installed."""
    program = which("git")
    if program is None:
        raise Unreadable("git is not installed, and commits can't be checked out without it\n  Install git.")
    # Neither the repository's hooks nor its file watcher may run: either may be any command.
    options = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false"]
    return ask([program, "--no-optional-locks", *options, *arguments], seconds=GIT_SECONDS, folder=repository)


def commit(name: str, repository: Path = ROOT) -> Commit:
    """Return the commit of that name: a branch, a tag, `HEAD~3`, a hash. Raises Unreadable."""
    shown = one_line(name, 80)
    if repository == ROOT and not IS_CHECKOUT:
        raise Unreadable(
            "this copy of zoomgrad is installed, so it has no commits to compare\n"
            "  Clone the project, and run `python -m harness ab` there."
        )
    try:
        if "\0" in name:
            raise NoAnswer("")
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        sha = git(repository, *asked).strip()
    except NoAnswer:
        sha = ""
    if not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        raise Unreadable(
            f"{shown}: not a commit of this repository\n"
            "  Name a branch, a tag or a hash, as `git log --oneline` shows them. A shallow clone lacks old commits."
        )
    for path in NEEDED:
        try:
            git(repository, "cat-file", "-e", f"{sha}:{path}")
        except NoAnswer:
            raise Unreadable(f"{shown}: this commit has no {path}\n  Name a newer commit.") from None
    return Commit(name=shown, sha=sha)


def refuse_changes(commits: Mapping[str, Commit], repository: Path = ROOT) -> None:
    """Raise Unreadable if the checkout has uncommitted changes to a commit that is compared.

    The duet would measure the commit without them, which is hardly what its user expects.
    """
    try:
        here = git(repository, "rev-parse", "HEAD").strip()
        changed = git(repository, "status", "--porcelain", "--untracked-files=no").splitlines()
    except NoAnswer as none:
        raise Unreadable(f"{repository}: git {none}\n  Run zoomgrad in a clone of the project.") from None
    named = [each.name for each in commits.values() if each.sha == here]
    if changed and named:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise Unreadable(
            f"{named[-1]} is checked out with uncommitted changes, which a duet would leave out: "
            f"{one_line(changed[0][3:], 80)}{more}\n"
            "  Commit them, or put them aside with `git stash`."
        )


@contextlib.contextmanager
def worktrees(
    commits: Mapping[str, Commit], repository: Path = ROOT, under: Path = WORKTREES
) -> Iterator[dict[str, Path]]:
    """Check out each commit in a worktree of its own, named as in `commits`. They are removed at the block's end.

    Raises Unreadable if git fails.
    """
    under.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(repository, under)
    folder = under / secrets.token_hex(6)
    lock = Path(f"{folder}.lock")
    with FileLock(lock):
        folder.mkdir(mode=0o700)
        made = {side: folder / side for side in commits}
        try:
            for side, path in made.items():
                try:
                    git(repository, "worktree", "add", "--quiet", "--detach", str(path), commits[side].sha)
                except NoAnswer as none:
                    raise Unreadable(
                        f"{commits[side].name}: it can't be checked out: git {none}\n"
                        "  Free some space, or check the clone with `git fsck`."
                    ) from None
            yield made
        finally:
            _remove(repository, folder)


def _remove(repository: Path, folder: Path) -> None:
    """Remove the worktrees of a folder, and the folder; then its lock, unless files are left, for the next duet."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_symlink():  # git would follow it, perhaps to a worktree of the user's
            continue
        with contextlib.suppress(NoAnswer, Unreadable):
            # Not `prune`, which would also forget worktrees of the user's on a disk that is not mounted.
            git(repository, "worktree", "remove", "--force", "--force", str(path))
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        Path(f"{folder}.lock").unlink(missing_ok=True)


def _remove_leftovers(repository: Path, under: Path) -> None:
    """Remove the worktrees of duets that were killed, whose locks nobody holds."""
    for lock in under.glob("*.lock"):
        folder = lock.with_suffix("")
        if re.fullmatch(r"[0-9a-f]{12}", folder.name) and not folder.is_symlink():
            with contextlib.suppress(Timeout, OSError), FileLock(lock, timeout=0):
                _remove(repository, folder)
