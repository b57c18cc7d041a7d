"""What must hold of a run that was disturbed and then resumed: checks that kills and full disks share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyperf

from faults.sandbox import Sandbox, Victim, left_over
from faults.tally import Tally
from harness.schedule import BLOCK
from results.files import Unreadable, read
from results.record import Record, Vouching
from results.store import Store

RUN_SECONDS = 90.0
"""A run takes a few; beside a busy machine some more."""

TRACEBACK = "Traceback (most recent call last)"

Files = Mapping[Path, bytes]


def on_disk(store: Store | None) -> Files:
    """Records as they lie in the run's folder, drafts not among them."""
    if store is None:
        return {}
    return {path: path.read_bytes() for path in sorted((store.folder / "records").glob("[!.]*.json"))}


def check_whole(store: Store | None, tally: Tally, where: str) -> None:
    """Every file of the run can be read."""
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
    """What was measured before is there, bit for bit, and in pyperf's suites.

    A record that tells why there is no result must be there, too; a resumed run may have replaced it by a result.
    """
    for path, content in before.items():
        if not path.exists():
            tally.count("lost", f"{where}: {path.name} is gone")
            continue
        try:
            record = Record.model_validate_json(content)
        except ValueError:
            continue  # it was torn before, and counted as that
        if record.status == "measured" and path.read_bytes() != content:
            tally.count("lost", f"{where}: {path.name} is another")
        elif store and record.status == "measured":
            suite = pyperf.Benchmark.load(str(store.pyperf_file(record.cell)))
            if record.block not in {run.get_metadata().get(BLOCK) for run in suite.get_runs()}:
                tally.count("lost", f"{where}: block {record.block} is not in {store.pyperf_file(record.cell).name}")


def check_complete(store: Store | None, tally: Tally, where: str, *, failures: bool = False) -> None:
    """Every cell was measured in every block. failures: a cell may have a record that tells why it was not."""
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
            tally.count("lost", f"{where}: {cell} has no record of {len(missing)} blocks")
    if not (store.folder / "report.html").is_file():
        tally.count("lost", f"{where}: there is no report")


def check_said(victim: Victim, code: int | None, codes: set[int], tally: Tally, where: str) -> None:
    """It ended as it should, and told what is wrong in words."""
    end = re.sub(r"\s+", " ", victim.said[-700:])
    if code is None:
        tally.count("hangs", f"{where}: it was still running after {RUN_SECONDS:g} s; it said: {end}")
    elif TRACEBACK in victim.said:
        tally.count("crashes", f"{where}: a traceback; it said: {end}")
    elif code not in codes:
        tally.count("crashes", f"{where}: it ended with {code}; it said: {end}")


def check_alone(sandbox: Sandbox, tally: Tally, where: str) -> None:
    """No process is left, and nothing outside the run's folder was touched."""
    for process in left_over():
        tally.count("left_over", f"{where}: {process}")
    for path in sandbox.touched():
        tally.count("touched", f"{where}: {path}")
