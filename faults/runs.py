"""Checks of a run that was disturbed and then resumed, shared by the kinds that disturb runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyperf
from pydantic import BaseModel

from faults.sandbox import Sandbox, Victim, left_over
from faults.tally import Tally
from harness.run.schedule import BLOCK
from results.files import Unreadable, read
from results.record import Record, Vouching
from results.run_file import Snapshot
from results.store import Store, file_name

RUN_SECONDS = 90.0
"""A run takes a few seconds, more on a busy machine."""

TRACEBACK = "Traceback (most recent call last)"

Files = Mapping[Path, bytes]


def as_files(snapshot: Snapshot) -> dict[str, bytes]:
    """Return a run as files: path in its folder -> content."""
    models: dict[str, BaseModel] = {"run.json": snapshot.run}
    models |= {f"records/{file_name(one.cell, str(one.block))}": one for one in snapshot.records}
    models |= {f"vouching/{one.workload}.json": one for one in snapshot.vouchings}
    models |= {f"profiles/{file_name(one.cell, one.profiler)}": one for one in snapshot.profiles}
    return {path: model.model_dump_json(indent=1).encode() for path, model in models.items()}


def on_disk(store: Store | None) -> Files:
    """Bytes of each record in the run's folder, without drafts."""
    if store is None:
        return {}
    return {path: path.read_bytes() for path in sorted((store.folder / "records").glob("[!.]*.json"))}


def check_whole(store: Store | None, tally: Tally, where: str) -> None:
    """Check that every file of the run is readable."""
    if store is None:
        return
    for folder, model in (("records", Record), ("vouching", Vouching)):
        for path in (store.folder / folder).glob("[!.]*.json"):
            try:
                read(path, model)
            except Unreadable as error:
                tally.count("torn", f"{where}: {error}")
    for path in (store.folder / "pyperf").glob("[!.]*.json"):
        try:
            pyperf.Benchmark.load(str(path))
        except (ValueError, KeyError, TypeError, EOFError) as error:
            tally.count("torn", f"{where}: {path.name}: {error}")


def check_kept(store: Store | None, before: Files, tally: Tally, where: str) -> None:
    """Check that every measured record is still there, bit for bit, and in its pyperf suite.

    A record without a result must still exist, but a resumed run may have replaced it by a result.
    """
    for path, content in before.items():
        if not path.exists():
            tally.count("lost", f"{where}: {path.name} is gone")
            continue
        try:
            record = Record.model_validate_json(content)
        except ValueError:
            continue  # already counted as torn
        if record.status == "measured" and path.read_bytes() != content:
            tally.count("lost", f"{where}: {path.name} has changed")
        elif store and record.status == "measured":
            suite = pyperf.Benchmark.load(str(store.pyperf_file(record.cell)))
            if record.block not in {run.get_metadata().get(BLOCK) for run in suite.get_runs()}:
                tally.count("lost", f"{where}: block {record.block} is not in {store.pyperf_file(record.cell).name}")


def check_complete(store: Store | None, tally: Tally, where: str, *, failures: bool = False) -> None:
    """Check that every cell was measured in every block. failures: accept a record that explains why it was not."""
    if store is None:
        tally.count("lost", f"{where}: there is no run")
        return
    records = store.records()
    there = {(record.cell, record.block) for record in records}
    bad = {record.cell for record in records if record.status != "measured"}
    for record in records:
        if record.status != "measured" and not failures:
            tally.count("lost", f"{where}: {record.cell} block {record.block} {record.status}: {record.reason}")
    for cell in store.run.cells:
        missing = [block for block in range(store.run.blocks) if (cell, block) not in there]
        if missing and cell not in bad:
            tally.count("lost", f"{where}: {cell} has no record for {len(missing)} blocks")
    if not (store.folder / "report.html").is_file():
        tally.count("lost", f"{where}: there is no report")


def check_said(victim: Victim, code: int | None, codes: set[int], tally: Tally, where: str) -> None:
    """Check that the victim ended in time, with one of those exit codes and without a traceback."""
    end = re.sub(r"\s+", " ", victim.said[-700:])
    if code is None:
        tally.count("hangs", f"{where}: it was still running after {RUN_SECONDS:g} s; its output: {end}")
    elif TRACEBACK in victim.said:
        tally.count("crashes", f"{where}: a traceback; its output: {end}")
    elif code not in codes:
        tally.count("crashes", f"{where}: it exited with {code}; its output: {end}")


def check_alone(sandbox: Sandbox, tally: Tally, where: str) -> None:
    """Check that no process is left and nothing outside the run's folder was touched."""
    for process in left_over():
        tally.count("left_over", f"{where}: {process}")
    for path in sandbox.touched():
        tally.count("touched", f"{where}: {path}")
