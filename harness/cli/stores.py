"""Id, folder or file of a run, as the user gives it -> its store."""

from __future__ import annotations

from pathlib import Path

from zoomgrad.engines.api import UnknownName
from zoomgrad.results.files import Unreadable
from zoomgrad.results.store import RUNS, RunFile, Store, stored


def store_of(run: str) -> Store:
    """Store of the run with that id, in that folder, or in that file. Raises UnknownName."""
    found = stored(Path(run)) or stored(RUNS / run)
    if not found:
        raise UnknownName("run", run, [path.parent.name for path in RUNS.glob("*/run.json")])
    return found


def folder_of(run: str) -> Store:
    """As `store_of`, for adding results to the run. Also raises Unreadable for a run kept as a file."""
    found = store_of(run)
    if isinstance(found, RunFile):
        raise Unreadable(f"{run}: a run kept as one file can't be changed\n  Give the id or the folder of a run.")
    return found
