"""A duet on disk: one folder, and in it `blocks.jsonl`, one line for the plan and one for each thing that was measured.

A line is on the disk before the next block begins. A duet that was killed may leave half a line at the end: it is left
out when the file is read, and cut off when the duet goes on. A folder may come from a stranger, like that of a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from pydantic import BaseModel, ValidationError

from results import owned
from results.duet.blocks import Absence, Block, Counts, Duet, Result
from results.files import Unreadable, first_of, inside, read_content, sync_folder
from results.store import RUNS

FILE = "blocks.jsonl"

MOST_BYTES = 1 << 28
"""A block has four kilobytes, so this is more than a week."""

_KINDS: dict[str, type[BaseModel]] = {kind.__name__.lower(): kind for kind in (Duet, Block, Absence, Counts)}


class Log:
    """The folder of one duet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = inside(folder, FILE)

    @classmethod
    def create(cls, duet: Duet, under: Path = RUNS) -> tuple[Log, Duet]:
        """Make a folder for a new duet, and return the duet with the id that is its folder's name.

        If the id is taken, because two duets began in the same second, a number is put into it.
        """
        under.mkdir(parents=True, exist_ok=True)
        start, _, kind = duet.id.rpartition("-")
        for number in count(2):
            folder = inside(under, duet.id)
            try:
                folder.mkdir()
                break
            except FileExistsError:
                duet = duet.model_copy(update={"id": f"{start}-{number}-{kind}"})
        owned.mark(folder, duet.id)
        log = cls(folder)
        log.append(duet)
        sync_folder(folder)
        return log, duet

    @classmethod
    def find(cls, name: str, under: Path = RUNS) -> Log:
        """The duet with that id or in that folder. Raises Unreadable."""
        for folder in (Path(name), under / name):
            if "\0" not in name and (folder / FILE).is_file():
                return cls(folder)
        known = sorted(path.parent.name for path in under.glob(f"*/{FILE}"))
        remedy = f"The newest is {known[-1]}." if known else f"There is none in {under}."
        raise Unreadable(f"{name}: no duet of this name\n  {remedy}")

    def append(self, one: BaseModel) -> None:
        """Add a line, and flush it to the disk."""
        with self._path.open("ab") as file:
            file.write(f'{{"{type(one).__name__.lower()}":{one.model_dump_json()}}}\n'.encode())
            file.flush()
            os.fsync(file.fileno())

    def cut(self) -> None:
        """Remove half a line from the end, which a duet that was killed left there."""
        content = read_content(self._path, MOST_BYTES)
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self._path, whole)

    def result(self) -> Result:
        """Everything that was measured. Raises Unreadable."""
        found: dict[str, list[BaseModel]] = {kind: [] for kind in _KINDS}
        for number, (kind, one) in enumerate(self._lines()):
            found[kind].append(one)
            if (kind == "duet") != (number == 0):
                raise self._wrong(number, "a duet's plan is on its first line, and nowhere else")
        if not found["duet"]:
            raise self._wrong(0, "no plan")
        try:
            return Result.model_validate(
                {
                    "duet": found["duet"][0],
                    "blocks": tuple(found["block"]),
                    "absences": tuple(found["absence"]),
                    "counts": tuple(found["counts"]),
                }
            )
        except ValidationError as error:
            raise Unreadable(f"{self._path}: {first_of(error)}\n  Start a new duet.") from error

    def _lines(self) -> Iterator[tuple[str, BaseModel]]:
        *lines, _ = read_content(self._path, MOST_BYTES).split(b"\n")
        for number, line in enumerate(lines):
            try:
                ((kind, fields),) = json.loads(line).items()
                yield kind, _KINDS[kind].model_validate(fields)
            except ValidationError as error:
                raise self._wrong(number, first_of(error)) from error
            except (ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:
                raise self._wrong(number, "not a line of a duet") from error

    def _wrong(self, line: int, what: str) -> Unreadable:
        return Unreadable(
            f"{self._path}, line {line + 1}: {what}\n"
            "  It was edited, or written by another version of zoomgrad. Start a new duet."
        )
