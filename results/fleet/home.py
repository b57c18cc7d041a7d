"""The store of a fleet's run, where the records of all hosts come home.

    <run>/records/…             as in every run: one record per cell and block
    <run>/fleet/<block>.json    the block is complete: its host, and everything that the host sent

A block comes as a whole, and its file is written in one step before its records are. So a client that is killed leaves
no part of a block, and the next one writes what is missing.
"""

from __future__ import annotations

from zoomgrad.results.fields import Blocks, Name
from zoomgrad.results.files import MOST_BYTES, files_inside, inside, read, write_atomically
from zoomgrad.results.record import HostFacts, Model, Record, Vouching
from zoomgrad.results.store import Store


class Complete(Model):
    """A block that a host completed."""

    block: Blocks
    host: Name
    records: tuple[Record, ...]
    vouchings: tuple[Vouching, ...] = ()


class TooLong(Exception):
    """A block has more bytes than could be read again."""


class Home:
    """Writes what hosts send. Every method raises Unreadable if a link leads out of the run's folder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.run = store.run
        self.completed: set[int] = set()
        there = {(record.cell, record.block) for record in store.records()}
        for path in files_inside(store.folder, "fleet"):
            complete = read(path, Complete)
            self._unpack(complete, [one for one in complete.records if (one.cell, one.block) not in there])

    def admit(self, name: str, facts: HostFacts) -> None:
        """Add a host to the run, or replace what is known of it."""
        self.run = self.run.model_copy(update={"hosts": {**self.run.hosts, name: facts}})
        write_atomically(inside(self.store.folder, "run.json"), self.run.model_dump_json(indent=1))

    def keep(self, complete: Complete) -> None:
        """Keep a block. Raises TooLong."""
        text = complete.model_dump_json()
        if len(text) > MOST_BYTES:
            raise TooLong(f"block {complete.block} has {len(text):,} bytes, more than {MOST_BYTES:,}")
        path = inside(self.store.folder, "fleet", f"{complete.block}.json")
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, text)
        self._unpack(complete, complete.records)

    def _unpack(self, complete: Complete, records: "list[Record] | tuple[Record, ...]") -> None:
        for record in records:
            self.store.write(record)
        for vouching in complete.vouchings:
            if not self.store.vouching(vouching.workload):
                self.store.write_vouching(vouching)
        self.completed.add(complete.block)
