"""Id, folder or file of a run -> its store."""

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
    store = stored(Path(run)) or stored(RUNS / run)
    if not store:
        raise UnknownName("run", run, [path.parent.name for path in RUNS.glob("*/run.json")])
    return store


def folder_of(run: str) -> Store:
    """As `store_of`, for adding results to the run. Also raises Unreadable for a run kept as a file."""
    store = store_of(run)
    if isinstance(store, RunFile):
        raise Unreadable(f"{run}: a run kept as one file can't be changed\n  Give the id or the folder of a run.")
    return store


def newest_or(run: Run) -> Store:
    """Store of the newest run, or a new one for `run` if there is none yet."""
    try:
        return latest()
    except Unreadable:
        return Store.create(run)
