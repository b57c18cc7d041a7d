"""Id, folder or file of a run, as the user gives it -> its store."""

from __future__ import annotations

from pathlib import Path

from zoomgrad.engines.api import UnknownName
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import Run
from zoomgrad.results.store import RUNS, RunFile, Store, latest, stored


def store_of(run: str | None) -> Store:
    """Store of the run with that id, in that folder, or in that file; None is the newest. Raises UnknownName."""
    if run is None:
        return latest()
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


def newest_or(run: Run) -> Store:
    """Store of the newest run, or a new one for `run` if there is none yet."""
    try:
        return latest()
    except Unreadable:
        return Store.create(run)
