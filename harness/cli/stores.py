"""What a user calls a run -> its store."""

from __future__ import annotations

from pathlib import Path

from engines.api import UnknownName
from results.files import Unreadable
from results.store import RUNS, RunFile, Store, stored


def store_of(run: str) -> Store:
    """The run of that id, in that folder, or in that file. Raises UnknownName."""
    found = stored(Path(run)) or stored(RUNS / run)
    if not found:
        raise UnknownName("run", run, [path.parent.name for path in RUNS.glob("*/run.json")])
    return found


def folder_of(run: str) -> Store:
    """The same, for a run that is to be added to. Raises Unreadable for a run that was kept as a file, too."""
    found = store_of(run)
    if isinstance(found, RunFile):
        raise Unreadable(f"{run}: a run that was kept as a file stays as it is\n  Name a run's id or folder.")
    return found
