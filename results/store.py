"""Records on disk: one folder a run, one file a record, each written whole as soon as its worker ends.

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
from collections.abc import Container
from pathlib import Path

from results import owned
from results.files import Unreadable, files_inside, folder_inside, inside, read, write_atomically
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
        order = {cell: index for index, cell in enumerate(self.run.cells)}
        found = [self._record(path, order) for path in files_inside(self.folder, "records")]
        return sorted(found, key=lambda record: (order[record.cell], record.block))

    def _record(self, path: Path, plan: Container[Cell]) -> Record:
        record = read(path, Record)
        _refuse_misnamed(path, file_name(record.cell, str(record.block)))
        if record.cell not in plan:
            raise Unreadable(
                f"{path}: the run has no cell {record.cell}\n  Remove the file: it belongs to another run."
            )
        return record

    def keep_as(self, folder: Path) -> Store:
        """Copy the plan, the records and the profiles to that folder, in the place of what was there.

        Reports are made anew there, and what else profilers left stays behind. A process that is killed meanwhile
        leaves the old folder or the new one. Raises Unreadable where zoomgrad did not make what was there.
        """
        run, records, looker = self.run, self.records(), self.looker
        vouchings, profiles = self.vouchings(), self.profiles()
        draft = Store(owned.begin(folder, run.id))
        draft._begin(run)
        for record in records:
            draft.write(record)
        for vouching in vouchings:
            draft.write_vouching(vouching)
        for profile in profiles:
            draft.write_profile(profile)
        if looker:
            draft.write_looker(looker)
        owned.replace(folder)
        return Store(folder)

    def remove(self, folder: Path) -> None:
        """Remove a folder within this run's with all that is in it; links are not followed.

        Does nothing if the run's folder has no marker, as in older runs. Raises Unreadable.
        """
        path = inside(self.folder, *folder.relative_to(self.folder).parts)
        if owned.is_marked(self.folder):
            shutil.rmtree(path, ignore_errors=True)

    def file(self, name: str) -> Path:
        """For a page beside the records."""
        return inside(self.folder, name)

    def pyperf_file(self, cell: Cell) -> Path:
        return inside(self.folder, "pyperf", file_name(cell))

    def export_file(self, name: str) -> Path:
        return inside(self.folder, "export", name)

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
