"""Runs of many machines -> one run, in which every run of a single machine is a host.

Hosts that are one machine count once in the statistics (`hosts.machines`), but their seconds are not mixed. Blocks are
numbered anew, so that each of them keeps its own ratios. Nothing else is computed: a merged run has the records of its
parts, and its report never mixes seconds of different machine types.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from results.comparability import unlike_settings
from results.files import Unreadable, inside
from results.record import HostFacts, Record, Run
from results.store import RUNS, Store

MERGED = "merged"
MOST_BLOCKS = 10_000
"""As many as a record can number."""
ONE_BY_ONE = "Show them side by side instead: zoomgrad report RUN RUN"


def merge(stores: Sequence[Store], command: Sequence[str]) -> Store:
    """Write a new run with all records. Raises Unreadable if the runs do not belong together, and OSError."""
    runs = [store.run for store in stores]
    _refuse_unlike(runs)
    records: list[Record] = []
    hosts: dict[str, HostFacts] = {}
    first = 0
    for store, run in zip(stores, runs, strict=True):
        names = {name: f"host-{len(hosts) + index}" for index, name in enumerate(run.hosts or [""], 1)}
        hosts |= {new: run.hosts.get(name) or _as_host(run) for name, new in names.items()}
        found = store.records()
        for record in found:
            # A reason for having no result may have no host in a fleet's run.
            if run.hosts and record.host not in names and (record.host or record.status == "measured"):
                point = f"{record.cell}, block {record.block}"
                raise Unreadable(f"{run.id}: {point}: measured by no host of the run\n  Leave that run out.")
            host = names.get(record.host) or ("" if run.hosts else names[""])
            records.append(record.model_copy(update={"block": first + record.block, "host": host}))
        first += max((record.block for record in found), default=-1) + 1
    first = max(first, sum(run.blocks for run in runs))
    if first > MOST_BLOCKS:
        raise Unreadable(f"{first:,} blocks are more than a run can have\n  Merge fewer runs.")
    run = _run(runs, hosts, command)
    RUNS.mkdir(parents=True, exist_ok=True)
    # A killed merge leaves a hidden folder, and no run that looks complete.
    with tempfile.TemporaryDirectory(prefix=".merging-", dir=RUNS, ignore_cleanup_errors=True) as draft:
        merged = Store.create(run, under=Path(draft))
        for record in records:
            merged.write(record)
        for store in stores:
            for vouching in store.vouchings():
                if not merged.vouching(vouching.workload):
                    merged.write_vouching(vouching)
        whole = inside(RUNS, run.id)
        if os.path.lexists(whole):
            raise Unreadable(f"{whole}: a run of this name exists already\n  Start the merge again.")
        merged.folder.rename(whole)
    return Store(whole)


def _refuse_unlike(runs: Sequence[Run]) -> None:
    """Raise Unreadable unless the runs measured the same things in the same way, and each of them is given once."""
    one = runs[0]
    seen = _identities(one)
    for other in runs[1:]:
        if seen & _identities(other):
            raise Unreadable(f"{other.id} is given twice, perhaps inside a merged run\n  Name each run once.")
        seen |= _identities(other)
        if not _same_code(other, one):
            was, now = one.commit or "an unknown commit", other.commit or "an unknown commit"
            changed = ", whose files had changed" if was == now and now.endswith("+") else ""
            raise Unreadable(f"{other.id} measured {now}, and {one.id} measured {was}{changed}\n  {ONE_BY_ONE}")
        if unlike := unlike_settings(other, one):
            raise Unreadable(f"{other.id} has other settings than {one.id}: {'; '.join(unlike)}\n  {ONE_BY_ONE}")
        for name in other.interpreters.keys() & one.interpreters.keys():
            versions = other.interpreters[name].version, one.interpreters[name].version
            if all(versions) and versions[0] != versions[1]:
                raise Unreadable(f"{other.id} has another {name} than {one.id}\n  {ONE_BY_ONE}")
        for name in other.workloads.keys() & one.workloads.keys():
            if other.workloads[name] != one.workloads[name]:
                raise Unreadable(f"{other.id} has another workload {name} than {one.id}\n  {ONE_BY_ONE}")
    references = {run.reference_interpreter for run in runs}
    if len(references) > 1:
        raise Unreadable(f"the runs have different references: {', '.join(sorted(references))}\n  {ONE_BY_ONE}")


def _same_code(one: Run, other: Run) -> bool:
    """Whether both measured the same code, for sure: a commit with changed files may be anything."""
    if one.code and other.code:
        return one.code == other.code
    return one.commit == other.commit and bool(one.commit) and not one.commit.endswith("+")


def _identities(run: Run) -> set[str]:
    return {facts.identity for facts in run.hosts.values() or [_as_host(run)]}


def _as_host(run: Run) -> HostFacts:
    identity = hashlib.sha256(f"{run.id} {run.created_at} {run.seed}".encode()).hexdigest()[:16]
    versions = {name: facts.version for name, facts in run.interpreters.items() if facts.version}
    return HostFacts(identity=identity, machine=run.machine, interpreters=versions, marks=run.marks)


def _run(runs: Sequence[Run], hosts: dict[str, HostFacts], command: Sequence[str]) -> Run:
    now = datetime.now(UTC)
    facts = {
        name: {key: value for run in reversed(runs) for key, value in getattr(run, name).items()}
        for name in ("engines", "workloads", "interpreters")
    }
    return runs[0].model_copy(
        update={
            **facts,
            "id": f"{now:%Y-%m-%dT%H%M%S}-{MERGED}",
            "created_at": now,
            "command": tuple(command),
            "fleet": MERGED,
            "hosts": hosts,
            "marks": (),
            "blocks": sum(run.blocks for run in runs),
            "cells": tuple(dict.fromkeys(cell for run in runs for cell in run.cells)),
            "left_out": (),
        }
    )
