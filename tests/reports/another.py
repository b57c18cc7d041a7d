"""Variants of a run for tests, with a different time, machine or speed. Nothing is timed."""

from dataclasses import replace
from datetime import timedelta

from zoomgrad.results.store import Store

SLOW_MACHINE = {"processor": "Other CPU", "cores": "8", "system": "Linux 6.1"}
MACHINE = {"processor": "Example CPU", "cores": "2", "system": "Linux 6.1"}


def stored(example, under, name=""):
    """Write the run to disk and return its folder, named after the run's id or `name`."""
    store = Store.create(example.run, under=under)
    for record in example.records:
        store.write(record)
    return store.folder.rename(under / name) if name else store.folder


def another(example, days=1, machine=MACHINE, seconds=1.0, **factors):
    """Return a copy of the run, `days` later, with all step times multiplied by `seconds`.

    factors: further factor for one engine's step times, under the engine's name with underscores.
    """
    made = example.run.created_at + timedelta(days=days)
    run = example.run.model_copy(
        update={"id": made.strftime("%Y-%m-%dT%H%M%S"), "created_at": made, "machine": machine, "commit": f"c{days}"}
    )
    factors = {name.replace("_", "-"): factor for name, factor in factors.items()}

    def change(record):
        if record.status != "measured":
            return record
        factor = seconds * factors.get(record.cell.engine, 1.0)
        return record.model_copy(update={"step_seconds": tuple(x * factor for x in record.step_seconds)})

    return replace(example.mapped(change), run=run)
