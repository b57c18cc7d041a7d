"""Records on disk: one folder a run, one file a record, each written whole as soon as its worker ends.

A run that is kept, as a baseline run, becomes one file: results/run_file.py.

    <run>/.zoomgrad-run              the marker: zoomgrad made the folder, and may remove what is in it
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
and nothing already measured is lost. A run may be a stranger's: every path in it must lie in its folder, links
resolved.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from pathlib import Path

from results import owned
from results.files import Unreadable, files_inside, folder_inside, inside, read, write_atomically
from results.profile import PROFILE, AnyProfile
from results.record import Cell, Record, Run, Vouching
from results.run_file import SUFFIX, Snapshot, pack, unpack

RUNS = Path(os.environ.get("ZOOMGRAD_RUNS") or Path(__file__).parent / "runs")
"""Where runs are kept, unless told otherwise."""

OBJECTS = Path(__file__).parent.parent / ".zoomgrad" / "objects"
"""For compiled code that a run loads again: a folder a run, in this checkout, wherever the run's own folder is."""

BASELINE_RUNS = Path(os.environ.get("ZOOMGRAD_BASELINE_RUNS") or Path(__file__).parent / "baseline_runs")
"""Committed runs, a file a preset: what the gate compares a run with, and what the README shows."""

LOOKER = "run.json"
FACTS = ("engines", "workloads", "interpreters")
"""What a Run tells of names, so that a report need not import them."""


def folder_name(cell: Cell, *rest: str) -> str:
    """A cell's key as the name of a folder; `rest` follows it."""
    return "--".join((cell.engine, cell.interpreter, cell.workload, *rest))


def file_name(cell: Cell, *rest: str) -> str:
    """The same as a file's name."""
    return f"{folder_name(cell, *rest)}.json"


class Store:
    """The folder of one run. Every method raises Unreadable for a file or a folder that a link leads elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, run: Run, *, under: Path = RUNS) -> Store:
        """A new folder for the run. Raises Unreadable where there is one of its name, and OSError."""
        store = cls(inside(under, run.id))
        try:
            store.folder.mkdir(parents=True)
        except FileExistsError as error:
            raise Unreadable(
                f"{store.folder}: there is a run of this name already\n"
                "  Two began in the same second, or the clock was set back. Start it again."
            ) from error
        try:
            owned.mark(store.folder, run.id)
            store._begin(run)
        except OSError:
            shutil.rmtree(store.folder, ignore_errors=True)  # made above; without its plan it is no run
            raise
        return store

    def _begin(self, run: Run) -> None:
        for part in ("records", "pyperf", "vouching"):
            (self.folder / part).mkdir()
        write_atomically(self.folder / "run.json", run.model_dump_json(indent=1))

    @property
    def run(self) -> Run:
        return read(inside(self.folder, "run.json"), Run)

    def write(self, record: Record) -> Path:
        path = inside(self.folder, "records", file_name(record.cell, str(record.block)))
        write_atomically(path, record.model_dump_json(indent=1))
        return path

    def records(self) -> list[Record]:
        """Every record of the run, in the order of its cells and blocks."""
        cells = self.run.cells
        plan = set(cells)
        return _in_order(cells, [self._record(path, plan) for path in files_inside(self.folder, "records")])

    def _record(self, path: Path, plan: Container[Cell]) -> Record:
        record = read(path, Record)
        _refuse_misnamed(path, file_name(record.cell, str(record.block)))
        if record.cell not in plan:
            raise Unreadable(
                f"{path}: the run has no cell {record.cell}\n  Remove the file: it belongs to another run."
            )
        return record

    def snapshot(self) -> Snapshot:
        """All that is read of the run, as one value."""
        return Snapshot(
            run=self.run,
            looker=self.looker,
            records=tuple(self.records()),
            vouchings=tuple(self.vouchings()),
            profiles=tuple(self.profiles()),
        )

    def keep_as(self, file: Path) -> RunFile:
        """Write the run as one file, in the place of the run that was there.

        A process that is killed meanwhile leaves the old file or the new one. Raises Unreadable where something else
        is there.
        """
        _refuse_others(file)
        content = pack(self.snapshot())
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
        return RunFile(file)

    def remove(self, folder: Path) -> None:
        """Remove a folder within this run's with all that is in it; links are not followed.

        Does nothing if the run's folder has no marker, as in older runs. Raises Unreadable.
        """
        path = inside(self.folder, *folder.relative_to(self.folder).parts)
        if owned.is_marked(self.folder):
            shutil.rmtree(path, ignore_errors=True)

    @property
    def place(self) -> Path:
        """Where the run is, as a user names it."""
        return self.folder

    def pages_folder(self) -> Path:
        """For what is made of the run. Raises Unreadable where it would be somebody else's."""
        return self.folder

    def file(self, name: str) -> Path:
        """For a page beside the records."""
        return inside(self.pages_folder(), name)

    def pyperf_file(self, cell: Cell) -> Path:
        return inside(self.folder, "pyperf", file_name(cell))

    def export_file(self, name: str) -> Path:
        return inside(self.pages_folder(), "export", name)

    def evidence_folder(self, cell: Cell) -> Path:
        """For the numbers of a cell that vouches for others."""
        return folder_inside(self.folder, "evidence", folder_name(cell))

    def write_vouching(self, vouching: Vouching) -> Path:
        path = self._vouching_file(vouching.workload)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, vouching.model_dump_json(indent=1))
        return path

    def forget_vouching(self, workload: str) -> None:
        """Remove what `write_vouching` wrote."""
        self._vouching_file(workload).unlink(missing_ok=True)

    def vouching(self, workload: str) -> Vouching | None:
        """Who vouches for the workload's engines; None where nobody was asked yet, and in older runs."""
        path = self._vouching_file(workload)
        return _vouching(path) if path.exists() else None

    def vouchings(self) -> list[Vouching]:
        """The same of every workload, in the order of their files."""
        return [_vouching(path) for path in files_inside(self.folder, "vouching")]

    def _vouching_file(self, workload: str) -> Path:
        return inside(self.folder, "vouching", f"{workload}.json")

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
        path = inside(self.folder, "profiles", file_name(profile.cell, profile.profiler))
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, profile.model_dump_json(indent=1))
        return path

    def profiles(self) -> list[AnyProfile]:
        """Every profile of the run, in the order of their files."""
        return [_profile(path) for path in files_inside(self.folder, "profiles") if path.name != LOOKER]

    def write_looker(self, plan: Run) -> None:
        """Keep what a plan of profiles knows of its engines, workloads and interpreters, beside what others knew."""
        before = self.looker or plan
        facts = {name: {**getattr(before, name), **getattr(plan, name)} for name in FACTS}
        path = inside(self.folder, "profiles", LOOKER)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, plan.model_copy(update=facts).model_dump_json(indent=1))

    @property
    def looker(self) -> Run | None:
        """The last plan of profiles, with the facts of all of them; None where nobody looked."""
        path = inside(self.folder, "profiles", LOOKER)
        return read(path, Run) if path.exists() else None

    def profile_folder(self, cell: Cell) -> Path:
        """For what else a profiler leaves of the cell."""
        return folder_inside(self.folder, "profiles", folder_name(cell))


class RunFile(Store):
    """A run that was kept as one file: it is read as a folder's is, and nothing is added to it.

    What is made of it, as a report, goes to a folder beside the file, with the file's name.
    """

    def __init__(self, file: Path) -> None:
        super().__init__(inside(file.parent, file.name.removesuffix(SUFFIX)))
        self.path = file

    @cached_property
    def _snapshot(self) -> Snapshot:
        return unpack(self.path)

    def snapshot(self) -> Snapshot:
        return self._snapshot

    @property
    def run(self) -> Run:
        return self._snapshot.run

    def records(self) -> list[Record]:
        return _in_order(self.run.cells, self._snapshot.records)

    def vouching(self, workload: str) -> Vouching | None:
        return next((one for one in self._snapshot.vouchings if one.workload == workload), None)

    def vouchings(self) -> list[Vouching]:
        return list(self._snapshot.vouchings)

    def profiles(self) -> list[AnyProfile]:
        return list(self._snapshot.profiles)

    @property
    def looker(self) -> Run | None:
        return self._snapshot.looker

    def pages_folder(self) -> Path:
        if not os.path.lexists(self.folder):
            self.folder.mkdir()
            owned.mark(self.folder, self.run.id)
        elif not owned.is_marked(self.folder):
            raise Unreadable(
                f"{self.folder}: zoomgrad did not make it, so nothing is written there\n"
                f"  Move it away, or move {self.path.name} to another folder; a report can go elsewhere with --into."
            )
        return self.folder

    @property
    def place(self) -> Path:
        return self.path


def _refuse_others(file: Path) -> None:
    """What is not a run's file belongs to somebody else."""
    try:
        if file.is_symlink():
            raise Unreadable(f"{file}: a link\n  Remove it.")
        if file.exists():
            unpack(file)
    except Unreadable as error:
        raise Unreadable(
            f"{file}: is not a run that this version of zoomgrad wrote, so it is not replaced\n"
            "  Move it away, then try again."
        ) from error


def stored(place: Path) -> Store | None:
    """The run in that folder, or in that file; None where there is neither."""
    has_name = place.name.removesuffix(SUFFIX).strip(".")
    if has_name and place.name.endswith(SUFFIX) and place.is_file():
        return RunFile(place)
    return Store(place) if (place / "run.json").is_file() else None


def _in_order(cells: Sequence[Cell], records: Iterable[Record]) -> list[Record]:
    order = {cell: index for index, cell in enumerate(cells)}
    return sorted(records, key=lambda record: (order[record.cell], record.block))


def _vouching(path: Path) -> Vouching:
    vouching = read(path, Vouching)
    _refuse_misnamed(path, f"{vouching.workload}.json")
    return vouching


def _profile(path: Path) -> AnyProfile:
    profile = read(path, PROFILE)
    _refuse_misnamed(path, file_name(profile.cell, profile.profiler))
    return profile


def _refuse_misnamed(path: Path, name: str) -> None:
    """What a file holds decides what it is; under another name it would count twice, or for something else."""
    if path.name != name:
        raise Unreadable(f"{path}: holds what {name} should hold\n  Rename it, or remove it and resume the run.")


def latest(under: Path = RUNS) -> Store:
    """The newest run. Raises Unreadable where there is none."""
    folders = sorted(path.parent for path in under.glob("*/run.json"))
    if not folders:
        raise Unreadable(f"{under}: no run yet\n  Make one with `zoomgrad run --preset smoke`.")
    return Store(folders[-1])
