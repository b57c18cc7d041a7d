"""Records on disk: one folder per run and one file per record, written atomically as soon as its worker ends.

A run kept as a baseline run is one file instead: see results/run_file.py.

    <run>/.zoomgrad-run              the marker: zoomgrad made the folder, and may remove its files
    <run>/run.json                   the plan, the machine, the settings
    <run>/records/<cell>--<block>.json
    <run>/pyperf/<cell>.json         the cell's blocks as one pyperf suite
    <run>/vouching/<workload>.json   the cells that vouch for the workload's engines
    <run>/evidence/<cell>/           losses, gradients and parameters of a vouching cell
    <run>/profiles/<cell>--<profiler>.json
    <run>/profiles/<cell>/           other files of a profiler: Scalene's own page and stacks
    <run>/export/                    the run in other tools' formats

A record is written to a draft beside its file, flushed to the disk and renamed, so that an interrupted run never leaves
half a file and loses nothing already measured. A run may come from a stranger: every path in it, with links resolved,
must stay inside its folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from zoomgrad.results import files
from zoomgrad.results.files import Stored, Unreadable, files_inside, folder_inside, inside, read, write_atomically
from zoomgrad.results.places import IS_CHECKOUT, ROOT, STATE
from zoomgrad.results.profile import PROFILE, AnyProfile
from zoomgrad.results.record import Cell, Model, Record, Run, Vouching
from zoomgrad.results.run_file import SUFFIX, Snapshot, pack, unpack

_HERE = ROOT / "results" if IS_CHECKOUT else STATE

RUNS = Path(os.environ.get("ZOOMGRAD_RUNS") or _HERE / "runs")
"""Default folder of runs."""

BASELINE_RUNS = Path(os.environ.get("ZOOMGRAD_BASELINE_RUNS") or _HERE / "baseline_runs")
"""Committed runs, one file per preset. The gate compares new runs with them, and the README shows their figures."""

PACKAGED_RUNS = Path(__file__).parent / "baseline_runs"
"""Where the gate looks next, unless the variable names a folder: an installed copy has the run of `smoke` there."""


def folder_name(cell: Cell, *rest: str) -> str:
    """A cell's key as a folder name, followed by `rest`."""
    return "--".join((cell.engine, cell.interpreter, cell.workload, *rest))


def file_name(cell: Cell, *rest: str) -> str:
    """As `folder_name`, with the suffix of a JSON file."""
    return f"{folder_name(cell, *rest)}.json"


def _record_name(record: Record) -> str:
    return file_name(record.cell, str(record.block))


def _profile_name(profile: AnyProfile) -> str:
    return file_name(profile.cell, profile.profiler)


class Store:
    """The folder of one run. Every method raises Unreadable if a link leads out of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, run: Run, *, under: Path = RUNS) -> Store:
        """Create a folder for the run. Raises Unreadable if a run of that name exists, and OSError."""
        store = cls(inside(under, run.id))
        try:
            store.folder.mkdir(parents=True)
        except FileExistsError as error:
            raise Unreadable(
                f"{store.folder}: a run of this name exists already\n"
                "  Two runs began in the same second, or the clock was set back. Start the run again."
            ) from error
        try:
            files.mark(store.folder, run.id)
            for part in ("records", "pyperf", "vouching", "profiles"):
                (store.folder / part).mkdir()
            store._write(run, "run.json")
        except OSError:
            shutil.rmtree(store.folder, ignore_errors=True)  # a folder without its plan is not a run
            raise
        return store

    def _write(self, model: Model, *parts: str) -> Path:
        path = inside(self.folder, *parts)
        path.parent.mkdir(exist_ok=True)  # git does not keep empty folders
        write_atomically(path, model.model_dump_json(indent=1))
        return path

    @property
    def run(self) -> Run:
        return read(inside(self.folder, "run.json"), Run)

    def learn(self, plan: Run) -> None:
        """Add the facts of engines, workloads and interpreters of another plan that the run does not know."""
        run = self.run
        facts = {name: _merged(getattr(run, name), getattr(plan, name)) for name in _FACTS}
        self.write_run(run.model_copy(update=facts))

    def write_run(self, run: Run) -> None:
        """Replace the run's plan and facts."""
        self._write(run, "run.json")

    def write(self, record: Record) -> Path:
        return self._write(record, "records", _record_name(record))

    def forget(self, record: Record) -> None:
        """Remove a record's file."""
        inside(self.folder, "records", _record_name(record)).unlink(missing_ok=True)

    def records(self) -> list[Record]:
        """All records of the run, in the plan's order of cells, then by block."""
        run, vouchings = self.run, dict[str, Vouching]()
        with contextlib.suppress(Unreadable):  # a resumed run makes a damaged vouching again
            vouchings = {vouching.workload: vouching for vouching in self.vouchings()}
        records = self._all("records", Record, _record_name)
        for record in records:
            try:
                run.refuse(record, vouchings)
            except ValueError as error:
                path = self.folder / "records" / _record_name(record)
                raise Unreadable(f"{path}: {error}\n  Remove the file, then resume the run.") from None
        return _in_order(run.cells, records)

    def _all(self, part: str, model: type[Stored] | TypeAdapter[Stored], name_of: Callable[[Any], str]) -> list[Stored]:
        """All files of a part, sorted by name. Raises Unreadable for a misnamed one, because it could count twice."""
        models = []
        for path in files_inside(self.folder, part):
            models.append(read(path, model))
            if path.name != (name := name_of(models[-1])):
                raise Unreadable(f"{path}: has the content of {name}\n  Rename it, or remove it and resume the run.")
        return models

    def snapshot(self) -> Snapshot:
        """Everything that reports and the gate read from the run, as one value."""
        return Snapshot(
            run=self.run,
            records=tuple(self.records()),
            vouchings=tuple(self.vouchings()),
            profiles=tuple(self.profiles()),
        )

    def keep_as(self, file: Path) -> RunFile:
        """Write the run as one file and replace any run at that path.

        If the process is killed, either the old file or the new one remains. Raises Unreadable if the path holds
        anything other than a run.
        """
        _refuse_others(file)
        content = pack(self.snapshot())
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
        return RunFile(file)

    def remove(self, folder: Path) -> None:
        """Remove a folder inside this run's folder with all its content, without following links.

        Does nothing if zoomgrad did not make the run's folder. Raises Unreadable.
        """
        path = inside(self.folder, *folder.relative_to(self.folder).parts)
        if files.is_marked(self.folder):
            shutil.rmtree(path, ignore_errors=True)

    def pages_folder(self) -> Path:
        """Folder for pages made from the run. Raises Unreadable if it belongs to somebody else."""
        return self.folder

    def file(self, *parts: str) -> Path:
        """Path of a page or an export beside the records."""
        return inside(self.pages_folder(), *parts)

    def pyperf_file(self, cell: Cell) -> Path:
        return inside(self.folder, "pyperf", file_name(cell))

    def evidence_folder(self, cell: Cell) -> Path:
        """Folder for the losses, gradients and parameters of a vouching cell."""
        return folder_inside(self.folder, "evidence", folder_name(cell))

    def write_vouching(self, vouching: Vouching) -> Path:
        return self._write(vouching, "vouching", f"{vouching.workload}.json")

    def forget_vouching(self, workload: str) -> None:
        """Remove the file that `write_vouching` wrote."""
        inside(self.folder, "vouching", f"{workload}.json").unlink(missing_ok=True)

    def vouching(self, workload: str) -> Vouching | None:
        """The cells that vouch for the workload's engines; None before vouching."""
        return next((one for one in self.vouchings() if one.workload == workload), None)

    def vouchings(self) -> list[Vouching]:
        """The vouchings of all workloads, sorted by file name."""
        return self._all("vouching", Vouching, lambda vouching: f"{vouching.workload}.json")

    def write_profile(self, profile: AnyProfile) -> Path:
        """Store a profile beside the records; replaces an earlier one of the same cell and profiler."""
        return self._write(profile, "profiles", _profile_name(profile))

    def profiles(self) -> list[AnyProfile]:
        """All profiles of the run, sorted by file name."""
        return self._all("profiles", PROFILE, _profile_name)

    def profile_folder(self, cell: Cell) -> Path:
        """Folder for a profiler's other files about the cell."""
        return folder_inside(self.folder, "profiles", folder_name(cell))


class RunFile(Store):
    """A run kept as one file. It reads like a folder, but nothing is added to it.

    Reports and exports go to a folder beside the file, which has the file's name without the suffix.
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

    def vouchings(self) -> list[Vouching]:
        return list(self._snapshot.vouchings)

    def profiles(self) -> list[AnyProfile]:
        return list(self._snapshot.profiles)

    def pages_folder(self) -> Path:
        if not os.path.lexists(self.folder):
            self.folder.mkdir()
            files.mark(self.folder, self.run.id)
        elif not files.is_marked(self.folder):
            raise Unreadable(
                f"{self.folder}: zoomgrad did not make this folder, so it writes nothing there\n"
                f"  Move it away, move {self.path.name} to another folder, or write the report elsewhere with --into."
            )
        return self.folder


def _refuse_others(file: Path) -> None:
    """Raise Unreadable if the path holds anything other than a run's file, which belongs to somebody else."""
    try:
        if os.path.lexists(file):
            unpack(file)
    except Unreadable as error:
        raise Unreadable(
            f"{file}: not a run that this version of zoomgrad wrote, so it is not replaced\n"
            "  Move it away, then try again."
        ) from error


def stored(place: Path) -> Store | None:
    """The run in that folder or file; None if there is neither."""
    has_name = place.name.removesuffix(SUFFIX).strip(".")
    if has_name and place.name.endswith(SUFFIX) and place.is_file():
        return RunFile(place)
    return Store(place) if (place / "run.json").is_file() else None


_FACTS = ("engines", "workloads", "interpreters")
"""Fields of a Run that describe names, so that reports need not import engines or workloads."""


def _merged(known: Mapping[str, Any], added: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the known facts with the added ones, each behind the name that precedes it in `added`."""
    names, at = list(known), 0
    for name in added:
        if name not in known:
            names.insert(at, name)
        at = names.index(name) + 1
    return {name: known[name] if name in known else added[name] for name in names}


def _in_order(cells: Sequence[Cell], records: Iterable[Record]) -> list[Record]:
    order = {cell: index for index, cell in enumerate(cells)}
    return sorted(records, key=lambda record: (order[record.cell], record.block))


def latest(under: Path = RUNS) -> Store | None:
    """The newest run; None if there is none yet."""
    folders = sorted(path.parent for path in under.glob("*/run.json"))
    return Store(folders[-1]) if folders else None
