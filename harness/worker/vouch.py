"""Vouch for other engines: train, compare with the engines that vouch for this one, and write the evidence.

`python -m zoomgrad.harness.worker.vouch JOB`. The harness decides which engine vouches for which
(`harness.run.vouchers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter

from zoomgrad.engines import NonFiniteLoss
from zoomgrad.engines.graph.arithmetic import check_arithmetic
from zoomgrad.engines.training import Trainer
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.evidence import (
    Evidence,
    Witness,
    compare,
    drill,
    drills,
    longest,
    stretches,
    write_evidence,
)
from zoomgrad.harness.worker.job import Reply, VouchJob, do_job, ready
from zoomgrad.harness.workloads import Workload

REMEDY = "One of them is wrong. Neither can vouch for other engines until you find out which."


def vouch(job: VouchJob) -> Reply:
    """Write the job's evidence, unless it differs from a witness's."""
    workload = workloads.load(job["workload"])
    engine = ready(job["engine"], workload)
    check_arithmetic()
    trainer = engine.prepare(workload)
    actual = dict(_evidence(trainer, workload, job))
    for cell, folder in job["witnesses"].items():
        difference = _difference(actual, Witness(Path(folder)))
        if difference:
            reason = f"{job['engine']} and {cell} disagree over {difference}"
            return {"status": "failed", "reason": reason, "remedy": REMEDY, "disagrees": True}
    steps = longest(actual)
    if not steps:
        raise NonFiniteLoss(0, "not a finite number")
    write_evidence(Path(job["folder"]), actual.items())
    names = [how.name for how in drills(workload) if how.name in actual]
    return {"status": "measured", "drills": names, "steps": steps}


def _evidence(trainer: Trainer, workload: Workload, job: VouchJob) -> Iterator[tuple[str, Evidence]]:
    """Evidence of the drills that there is time for, then of the stretches."""
    start, taken = perf_counter(), 0
    for how in drills(workload):
        steps = sum(how.pieces)
        if taken and (perf_counter() - start) / taken * steps > job["seconds"]:
            continue
        yield how.name, drill(trainer, workload, how)
        taken += steps
    yield from stretches(trainer, workload, seconds=job["seconds"], steps=job["steps"], starts=job["starts"])


def _difference(actual: Mapping[str, Evidence], witness: Witness) -> str:
    """Description of the first difference from the witness; empty if both agree on all evidence that both have."""
    for name, evidence in actual.items():
        first = compare(evidence, witness.evidence(name))[1] if name in witness else ""
        if first:
            where = f"the first {int(name):,} steps" if name.isdigit() else f"the drill {name!r}"
            return f"{where}: {first}"
    return ""


if __name__ == "__main__":
    do_job(vouch)
