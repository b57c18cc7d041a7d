"""The store of a fleet's run, where the records of all hosts come home.

    <run>/records/…                          as in every run: one record per cell and block
    <run>/fleet/<block>.json                 the block is complete: where, and at which attempt
    <run>/partial/<cell>--<block>--<host>--<attempt>….json   of a block that its host did not complete
    <run>/hosts/<host>/pyperf/<cell>.json    pyperf's files, because pyperf mixes no hosts
    <run>/hosts/<host>/<workload>.json       the cells that vouch for the workload's engines on that host

Every file is written or moved in one step, so a killed client leaves neither half a record nor the same one twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from results.fields import Blocks, Count, Name
from results.files import files_inside, inside, read, write_atomically
from results.record import Cell, HostFacts, Model, Record, Run, Vouching
from results.store import Store, file_name


class Complete(Model):
    """A block that a host completed."""

    block: Blocks
    host: Name
    attempt: Count


class Home:
    """Writes what hosts send. Every method raises Unreadable if a link leads out of the run's folder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._run = store.run

    @property
    def run(self) -> Run:
        return self._run

    def admit(self, name: str, facts: HostFacts) -> None:
        """Add a host to the run, or replace what is known of it."""
        self._run = self._run.model_copy(update={"hosts": {**self._run.hosts, name: facts}})
        write_atomically(inside(self.store.folder, "run.json"), self._run.model_dump_json(indent=1))

    def keep(self, record: Record) -> None:
        self.store.write(record)

    def kept(self, cell: Cell, block: int) -> Record | None:
        """The record of that cell and block, if there is one."""
        path = inside(self.store.folder, "records", file_name(cell, str(block)))
        return read(path, Record) if path.exists() else None

    def keep_times(self, host: str, cell: Cell, suite: str) -> None:
        """Keep a cell's pyperf suite of that host."""
        self._write(suite, "hosts", host, "pyperf", file_name(cell))

    def keep_vouching(self, host: str, vouching: Vouching) -> None:
        """Keep a host's vouching; the first host's is also the run's."""
        self._write(vouching.model_dump_json(indent=1), "hosts", host, f"{vouching.workload}.json")
        if not self.store.vouching(vouching.workload):
            self.store.write_vouching(vouching)

    def complete(self, block: int, host: str, attempt: int) -> None:
        text = Complete(block=block, host=host, attempt=attempt).model_dump_json()
        self._write(text, "fleet", f"{block}.json")

    def completed(self) -> set[int]:
        return {read(path, Complete).block for path in files_inside(self.store.folder, "fleet")}

    def records(self) -> list[Record]:
        return self.store.records()

    def set_aside(self, block: int) -> int:
        """Move the records of a block that begins again to the partial ones. Return their number."""
        moved = 0
        for path in self._of_block(block):
            record = read(path, Record)
            if record.host:
                path.replace(self._partial(record))
                moved += 1
            else:
                path.unlink()  # a reason for having no result, written here: it has lapsed
        return moved

    def keep_aside(self, record: Record) -> None:
        """Keep a record that came after its host had been given up."""
        write_atomically(self._partial(record), record.model_dump_json(indent=1))

    def partial(self) -> list[Record]:
        """Records of the attempts that were given up."""
        return [read(path, Record) for path in files_inside(self.store.folder, "partial")]

    def _of_block(self, block: int) -> Iterator[Path]:
        for path in files_inside(self.store.folder, "records"):
            if path.name.endswith(f"--{block}.json"):
                yield path

    def _partial(self, record: Record) -> Path:
        """Path for a partial record. Another record with the same names is never replaced."""
        inside(self.store.folder, "partial").mkdir(exist_ok=True)
        content = record.model_dump_json()
        for number in count():
            name = file_name(record.cell, str(record.block), record.host, str(record.attempt), *[str(number)][:number])
            path = inside(self.store.folder, "partial", name)
            if not path.exists() or read(path, Record).model_dump_json() == content:
                return path
        raise AssertionError

    def _write(self, text: str, *parts: str) -> None:
        path = inside(self.store.folder, *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
