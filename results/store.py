"""Records on disk: one folder a run, one file a record, each written whole as soon as its worker ends.

    <run>/run.json                   the plan, the machine, the settings
    <run>/records/<cell>--<block>.json
    <run>/pyperf/<cell>.json         the cell's blocks as one pyperf suite
    <run>/vouching/<workload>.json   who vouches for the workload's engines
    <run>/evidence/<cell>/           their losses, gradients and parameters, which all others are compared with
    <run>/profiles/<cell>--<profiler>.json
    <run>/profiles/run.json          the plan of who looked: facts of engines that the race may not have had
    <run>/profiles/<cell>/           what else a profiler left: Scalene's own page, stacks for a flame graph
    <run>/export/                    the run in other tools' formats

Shared objects that were slow to compile lie elsewhere, below OBJECTS: whoever hands on a run folder hands on no code.
A record is written to a neighbour, flushed to the disk and renamed, so that an interrupted run never leaves half a file
and nothing already measured is lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from results.profile import PROFILE, AnyProfile
from results.record import Cell, Record, Run, Vouching

RUNS = Path(os.environ.get("ZOOMGRAD_RUNS") or Path(__file__).parent / "runs")
"""Where runs are kept, unless told otherwise."""

OBJECTS = Path(__file__).parent.parent / ".zoomgrad" / "objects"
"""For compiled code that a run loads again: a folder a run, in this checkout, wherever the run's own folder is."""

REFERENCE = Path(os.environ.get("ZOOMGRAD_REFERENCE") or Path(__file__).parent / "reference")
"""Committed runs, a folder a preset: what the gate holds a run against, and what the README shows."""

LOOKER = "run.json"
FACTS = ("engines", "workloads", "interpreters")
"""What a Run tells of names, so that a report need not import them."""

Stored = TypeVar("Stored")


class Unreadable(Exception):
    """A stored file that is missing or does not fit the schema; says which file, which field and what to do."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write `content` so that a reader sees the old file or the new one, and a power cut keeps one of them."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    # The rename itself is durable only once its folder is (POSIX); Windows can't open a folder.
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path: Path, model: type[Stored] | TypeAdapter[Stored]) -> Stored:
    """Read and validate one stored file. Raises Unreadable, naming the file and the field that is wrong."""
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    try:
        return adapter.validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise Unreadable(f"{path}: no such file\n  A run folder holds run.json and a folder of records.") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: not UTF-8 text\n  Remove the file, then resume the run it belongs to.") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file as a whole"
        raise Unreadable(
            f"{path}: {field}: {first['msg']}\n"
            "  The file was edited, cut short, or written by another version of zoomgrad. "
            "Remove it and resume the run, or read it with the version that wrote it."
        ) from error


def folder_name(cell: Cell, *rest: str) -> str:
    """A cell's key as the name of a folder; `rest` follows it."""
    return "--".join((cell.engine, cell.interpreter, cell.workload, *rest))


def file_name(cell: Cell, *rest: str) -> str:
    """The same as a file's name."""
    return f"{folder_name(cell, *rest)}.json"


class Store:
    """The folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, run: Run, *, under: Path = RUNS) -> Store:
        store = cls(under / run.id)
        for part in ("records", "pyperf", "vouching"):
            (store.folder / part).mkdir(parents=True)  # never into the folder of another run
        write_atomically(store.folder / "run.json", run.model_dump_json(indent=1))
        return store

    @property
    def run(self) -> Run:
        return read(self.folder / "run.json", Run)

    def write(self, record: Record) -> Path:
        path = self.folder / "records" / file_name(record.cell, str(record.block))
        write_atomically(path, record.model_dump_json(indent=1))
        return path

    def records(self) -> list[Record]:
        """Every record of the run, in the order of its cells and blocks."""
        order = {cell: index for index, cell in enumerate(self.run.cells)}
        found = [read(path, Record) for path in self._record_paths()]
        return sorted(found, key=lambda record: (order.get(record.cell, len(order)), record.cell.key, record.block))

    def keep_as(self, folder: Path) -> Store:
        """Copy the plan, the records and the profiles to that folder, in the place of what was there.

        Reports are made anew there, and what else profilers left stays behind.
        """
        draft = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(draft, ignore_errors=True)  # of a copy that was interrupted
        for part in ("records", "profiles", "vouching"):
            (draft / part).mkdir(parents=True)
            for path in (self.folder / part).glob("[!.]*.json"):
                shutil.copy(path, draft / part)
        shutil.copy(self.folder / "run.json", draft)
        # A rename can't replace a folder that is not empty.
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
        return Store(folder)

    def pyperf_file(self, cell: Cell) -> Path:
        return self.folder / "pyperf" / file_name(cell)

    def export_file(self, name: str) -> Path:
        return self.folder / "export" / name

    def evidence_folder(self, cell: Cell) -> Path:
        """For the numbers of a cell that vouches for others."""
        return self.folder / "evidence" / folder_name(cell)

    def write_vouching(self, vouching: Vouching) -> Path:
        path = self.folder / "vouching" / f"{vouching.workload}.json"
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, vouching.model_dump_json(indent=1))
        return path

    def forget_vouching(self, workload: str) -> None:
        """Remove what `write_vouching` wrote."""
        (self.folder / "vouching" / f"{workload}.json").unlink(missing_ok=True)

    def vouching(self, workload: str) -> Vouching | None:
        """Who vouches for the workload's engines; None where nobody was asked yet, and in older runs."""
        path = self.folder / "vouching" / f"{workload}.json"
        return read(path, Vouching) if path.exists() else None

    def vouchings(self) -> list[Vouching]:
        """The same of every workload, in the order of their files."""
        return [read(path, Vouching) for path in sorted((self.folder / "vouching").glob("[!.]*.json"))]

    def objects_folder(self, cell: Cell) -> Path:
        """A cell's own: another's object would leave it without a compile time."""
        return self._objects / folder_name(cell)

    def remove_objects(self) -> None:
        """Remove the objects of all cells."""
        shutil.rmtree(self._objects, ignore_errors=True)

    @property
    def _objects(self) -> Path:
        # By the folder's place, not by the run's id, which a stranger may have written.
        folder = self.folder.resolve()
        return OBJECTS / f"{folder.name}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"

    def write_profile(self, profile: AnyProfile) -> Path:
        """Put a profile beside the records; a later look at the same cell takes its place."""
        path = self.folder / "profiles" / file_name(profile.cell, profile.profiler)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, profile.model_dump_json(indent=1))
        return path

    def profiles(self) -> list[AnyProfile]:
        """Every profile of the run, in the order of their files."""
        paths = sorted((self.folder / "profiles").glob("[!.]*.json"))
        return [read(path, PROFILE) for path in paths if path.name != LOOKER]

    def write_looker(self, plan: Run) -> None:
        """Keep what a plan of profiles knows of its engines, workloads and interpreters, beside what others knew."""
        before = self.looker or plan
        facts = {name: {**getattr(before, name), **getattr(plan, name)} for name in FACTS}
        path = self.folder / "profiles" / LOOKER
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, plan.model_copy(update=facts).model_dump_json(indent=1))

    @property
    def looker(self) -> Run | None:
        """The last plan of profiles, with the facts of all of them; None where nobody looked."""
        path = self.folder / "profiles" / LOOKER
        return read(path, Run) if path.exists() else None

    def profile_folder(self, cell: Cell) -> Path:
        """For what else a profiler leaves of the cell."""
        return self.folder / "profiles" / folder_name(cell)

    def _record_paths(self) -> Iterator[Path]:
        yield from sorted((self.folder / "records").glob("[!.]*.json"))


def latest(under: Path = RUNS) -> Store:
    """The newest run. Raises Unreadable where there is none."""
    folders = sorted(path.parent for path in under.glob("*/run.json"))
    if not folders:
        raise Unreadable(f"{under}: no run yet\n  Make one with `zoomgrad run --preset smoke`.")
    return Store(folders[-1])
