"""An engine that vouches for others: trains, is compared with those who vouch for it, and writes its evidence.

`python -m harness.worker.vouch JOB`. Which engine vouches for which is the harness's decision (`harness.vouching`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from engines import NonFiniteLoss
from engines.api import Trainer
from engines.arithmetic import check_arithmetic
from harness.worker.evidence import DRILLS, Evidence, Witness, compare, drill, stretches, write_evidence
from harness.worker.job import VouchJob, VouchOutcome, do_job, ready
from harness.workloads import Workload

SLOWER = 10
"""All drills take about so many times as long as the first."""


def vouch(job: VouchJob) -> VouchOutcome:
    """Write the job's evidence, unless it differs from a witness's: then there is none."""
    engine, workload, refusal = ready(job["engine"], job["workload"])
    if refusal:
        return {"status": "skipped", "reason": refusal}
    check_arithmetic()
    trainer = engine.prepare(workload)
    witnesses = {cell: Witness(Path(folder)) for cell, folder in job["witnesses"].items()}
    start = perf_counter()
    found = []
    for name, evidence in _evidence(trainer, workload, job):
        for cell, witness in witnesses.items():
            first = compare(evidence, witness.evidence(name))[1] if name in witness else ""
            if first:
                where = f"the first {int(name):,} steps" if name.isdigit() else f"the drill {name!r}"
                return {
                    "status": "failed",
                    "reason": f"{job['engine']} and {cell} disagree over {where}: {first}",
                    "remedy": "One of them computes wrongly; until it is known which, neither can vouch for others.",
                    "disagrees": True,
                }
        found.append((name, evidence))
    names = write_evidence(Path(job["folder"]), found)
    return {
        "status": "measured",
        "drills": [name for name in names if not name.isdigit()],
        "steps": max(int(name) for name in names if name.isdigit()),
        "seconds": perf_counter() - start,
    }


def _evidence(trainer: Trainer, workload: Workload, job: VouchJob) -> Iterator[tuple[str, Evidence]]:
    """That of the drills that there is time for, then that of the stretches."""
    start = perf_counter()
    for how in DRILLS:
        try:
            yield how.name, drill(trainer, workload, how)
        except NonFiniteLoss:
            continue  # at the workload's rate this training diverges: there is nothing to compare
        if SLOWER * (perf_counter() - start) > job["seconds"]:
            break
    for steps, evidence in stretches(trainer, batch=workload.batch, seconds=job["seconds"], steps=job["steps"]):
        yield str(steps), evidence


if __name__ == "__main__":
    do_job(vouch)
