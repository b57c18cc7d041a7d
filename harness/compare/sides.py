"""Two names -> the sides of a comparison: commits or interpreters, and where their processes run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zoomgrad.harness.compare import SIDES, commits
from zoomgrad.harness.compare.turns import Subject
from zoomgrad.harness.machine import environments, interpreters, named
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.project import importable
from zoomgrad.results.files import Unreadable


@dataclass(frozen=True)
class Side:
    """A commit or an interpreter, and the interpreter that each interpreter of a cell stands for on this side."""

    subject: Subject
    hosts: Mapping[str, Interpreter]


@dataclass(frozen=True)
class Place:
    """Where one side's processes run."""

    checkout: Path
    pythons: Mapping[str, tuple[Path, bool]]
    """Interpreter of a cell -> the Python of the side's environment, and whether it has a JIT."""


def sides(a: str, b: str, hosts: Sequence[str]) -> dict[str, Side]:
    """Both sides: two commits on these hosts, or two interpreters. Raises Unreadable and UnknownName."""
    everything, names = named.asked([a, b], interpreters.discover())
    by_name = {interpreter.name: interpreter for interpreter in everything}
    are_interpreters = [name in by_name for name in names]
    if not any(are_interpreters):
        subjects = {"base": commits.commit(a), "head": commits.commit(b)}
        commits.refuse_changes(subjects)
        everything, asked = named.asked(hosts, everything)
        chosen = [interpreters.choose(name, everything) for name in asked] or [interpreters.reference(everything)]
        return {side: Side(subjects[side], {one.name: one for one in chosen}) for side in SIDES}
    if not all(are_interpreters):
        stranger = b if are_interpreters[0] else a
        raise Unreadable(f"{stranger}: not an interpreter, but the other one is\n  `zoomgrad list` names them.")
    if hosts:
        raise Unreadable("interpreters are compared, so --interpreters would have no effect\n  Leave it out.")
    return {side: Side(Subject(name=name), {names[0]: by_name[name]}) for side, name in zip(SIDES, names, strict=True)}


@contextlib.contextmanager
def placed(both: Mapping[str, Side]) -> Iterator[dict[str, Place]]:
    """Where each side runs: the folder of its packages, and environments, which are made if needed."""
    pythons = {
        side: {name: (environments.environment(host), host.warms_up) for name, host in one.hosts.items()}
        for side, one in both.items()
    }
    with contextlib.ExitStack() as stack:
        folders = dict.fromkeys(SIDES, importable())
        if both["base"].subject.sha:
            subjects = {side: one.subject for side, one in both.items()}
            folders = stack.enter_context(commits.checkouts(subjects))
        yield {side: Place(folders[side], pythons[side]) for side in SIDES}
