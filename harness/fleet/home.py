"""The store of a fleet's run, where the records of all hosts come home.

    <run>/records/…             as in every run: one record per cell and block
    <run>/fleet/<block>.json    the block is complete: its host, and everything that the host sent

A block comes as a whole, and its file is written in one step before its records are. So a client that is killed leaves
no part of a block, and the next one writes what is missing.
"""

from __future__ import annotations

from zoomgrad.results.fields import Blocks, Name
from zoomgrad.results.files import files_inside, inside, read, write_atomically
from zoomgrad.results.record import HostFacts, Model, Record, Vouching
from zoomgrad.results.store import Store


class Complete(Model):
    """A block that a host completed."""

    block: Blocks
    host: Name
    records: tuple[Record, ...]
    vouchings: tuple[Vouching, ...] = ()


class Home:
    """Writes what hosts send. Every method raises Unreadable if a link leads out of the run's folder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.run = store.run
        self.completed: set[int] = set()
        for path in files_inside(store.folder, "fleet"):
            self._unpack(read(path, Complete))

    def admit(self, name: str, facts: HostFacts) -> None:
        """Add a host to the run. Its machine stands for all, because all are of one type."""
        self.run = self.run.model_copy(update={"hosts": {**self.run.hosts, name: facts}, "machine": facts.machine})
        write_atomically(inside(self.store.folder, "run.json"), self.run.model_dump_json(indent=1))

    def keep(self, complete: Complete) -> None:
        """Keep a block."""
        path = inside(self.store.folder, "fleet", f"{complete.block}.json")
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, complete.model_dump_json())
        self._unpack(complete)

    def _unpack(self, complete: Complete) -> None:
        for record in complete.records:
            self.store.write(record)
        for vouching in complete.vouchings:
            if not self.store.vouching(vouching.workload):
                self.store.write_vouching(vouching)
        self.completed.add(complete.block)
