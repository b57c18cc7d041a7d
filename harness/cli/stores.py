"""Id, folder or file of a run -> its store."""

from __future__ import annotations

from pathlib import Path

from zoomgrad.engines.api import UnknownName
from zoomgrad.results.files import Unreadable
from zoomgrad.results.store import RUNS, RunFile, Store, latest, stored


def store_of(run: str | None) -> Store:
    """Store of the run with that id, folder or file; None is the newest. Raises UnknownName, and Unreadable."""
    store = latest() if run is None else stored(Path(run)) or stored(RUNS / run)
    if store:
        return store
    if run is None:
        raise Unreadable(f"{RUNS}: no run yet\n  Make one with `zoomgrad run --preset smoke`.")
    raise UnknownName("run", run, [path.parent.name for path in RUNS.glob("*/run.json")])


def folder_of(run: str) -> Store:
    """As `store_of`, for adding results to the run. Also raises Unreadable for a run kept as a file."""
    store = store_of(run)
    if isinstance(store, RunFile):
        raise Unreadable(f"{run}: a run kept as one file can't be changed\n  Give the id or the folder of a run.")
    return store
