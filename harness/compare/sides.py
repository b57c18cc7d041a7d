"""Two names -> the sides of a comparison: commits or interpreters, and where their processes run.

A commit's files are unpacked in a temporary folder. The user's checkout and its repository are only read.
"""

from __future__ import annotations

import contextlib
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from zoomgrad.engines.asking import NoAnswer, one_line
from zoomgrad.harness.machine import environments, facts, interpreters
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.project import importable
from zoomgrad.results.files import Unreadable
from zoomgrad.results.places import IS_CHECKOUT, ROOT

SIDES = ("base", "head")


@dataclass(frozen=True)
class Side:
    """A commit, or an interpreter of this checkout, as the user named it, and where its processes run."""

    name: str
    sha: str = ""
    """Empty for an interpreter."""
    hosts: Mapping[str, Interpreter] = field(default_factory=dict)
    """Interpreter of a cell -> the one that it stands for on this side."""
    checkout: Path = ROOT
    """The folder of its packages."""

    def __str__(self) -> str:
        return f"{self.name} ({self.sha[:12]})" if self.sha else self.name


Sides = Mapping[str, Side]
"""By the names in SIDES."""


def sides(a: str, b: str, hosts: Sequence[str]) -> Sides:
    """Both sides: two commits on these hosts, or two interpreters. Raises Unreadable and UnknownName."""
    everything, names = interpreters.asked([a, b], interpreters.discover())
    by_name = {interpreter.name: interpreter for interpreter in everything}
    are_interpreters = [name in by_name for name in names]
    if not any(are_interpreters):
        commits = [commit(a), commit(b)]
        everything, asked = interpreters.asked(hosts, everything)
        chosen = [interpreters.choose(name, everything) for name in asked] or [interpreters.reference(everything)]
        by_name = {one.name: one for one in chosen}
        return {side: replace(one, hosts=by_name) for side, one in zip(SIDES, commits, strict=True)}
    if not all(are_interpreters):
        stranger = b if are_interpreters[0] else a
        raise Unreadable(f"{stranger}: not an interpreter, but the other one is\n  `zoomgrad list` names them.")
    if hosts:
        raise Unreadable("interpreters are compared, so --interpreters would have no effect\n  Leave it out.")
    return {side: Side(name, hosts={names[0]: by_name[name]}) for side, name in zip(SIDES, names, strict=True)}


@contextlib.contextmanager
def placed(both: Sides, repository: Path = ROOT) -> Iterator[Sides]:
    """Both sides with the folder of their packages: ours, or a commit's, unpacked. Makes missing environments.

    Raises Unreadable if git fails.
    """
    for one in both.values():
        for host in one.hosts.values():
            environments.environment(host)
    with tempfile.TemporaryDirectory(prefix="zoomgrad-", ignore_cleanup_errors=True) as folder:
        checkouts = {
            side: _unpacked(one.sha, Path(folder) / side, repository) if one.sha else importable()
            for side, one in both.items()
        }
        yield {side: replace(one, checkout=checkouts[side]) for side, one in both.items()}


# --- commits ----------------------------------------------------------------------------------------------------------


def commit(name: str, repository: Path = ROOT) -> Side:
    """Return the commit of that name: a branch, a tag, `HEAD~3`, a hash. Raises Unreadable."""
    shown = one_line(name, 80)
    if repository == ROOT and not IS_CHECKOUT:
        raise Unreadable(
            f"{shown}: not a run or an interpreter, and an installed copy of zoomgrad has no commits\n"
            "  Name two runs, or two interpreters that `zoomgrad list` prints. Commits need a checkout."
        )
    sha = ""
    with contextlib.suppress(NoAnswer):
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        sha = "" if "\0" in name else facts.git(repository, *words).strip()
    if not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        raise Unreadable(
            f"{shown}: not a run, an interpreter or a commit of this repository\n"
            "  Name two runs, two interpreters (`zoomgrad list`), or two commits, as `git log --oneline` shows them. A "
            "shallow clone lacks old commits."
        )
    return Side(shown, sha)


def _unpacked(sha: str, folder: Path, repository: Path) -> Path:
    """Unpack the commit's files in the folder, and return it."""
    packed = folder.with_suffix(".tar")
    try:
        facts.git(repository, "archive", "--format=tar", f"--output={packed}", sha)
    except NoAnswer as none:
        raise Unreadable(f"{repository}: git archive {none}\n  Check git, and the clone.") from None
    with tarfile.open(packed) as files:
        files.extractall(folder, filter="data")
    packed.unlink()
    return folder
