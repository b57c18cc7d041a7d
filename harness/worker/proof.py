"""The gate of correctness: a few steps of training, compared with the reference's doubles.

`python -m harness.worker.proof JOB` makes the reference; a measuring worker compares itself with it before it times
anything.
"""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import engines
from engines.api import Trainer
from harness import workloads
from harness.worker.job import Job, Outcome, do_job, write_json

PARTS = ("losses", "gradients", "parameters")

Evidence = dict[str, "array[float]"]
"""`losses`, `gradients`, `parameters`: what has to be the same."""


class Mismatch(Exception):
    """An engine gave other numbers than the reference; says where first."""


def evidence(trainer: Trainer, *, batch: int, steps: int) -> Evidence:
    """Gradients of two rows without an update, then losses and parameters after `steps` steps, from the same start.

    batch: the workload's; at most 2 is used, so that two steps bring at least one update.
    """
    # Two rows: the first one of xor is all zeros, and so are its gradients.
    trainer.restart(batch=3)
    trainer.train(2)
    gradients = trainer.gradients()
    trainer.restart(batch=min(batch, 2))
    trainer.train(steps)
    return {"losses": trainer.losses, "gradients": gradients, "parameters": trainer.parameters()}


def compare(found: Evidence, reference: Evidence) -> tuple[float, str]:
    """The largest |x - reference| / max(1, |reference|), and where the first difference is ("" where none is).

    Bits are compared but for two freedoms: NaN equals NaN, and the sign of zero is free.
    """
    worst, first = 0.0, ""
    for part in PARTS:
        if len(found[part]) != len(reference[part]):
            return math.inf, f"{len(found[part])} {part} instead of {len(reference[part])}"
        for index, (x, y) in enumerate(zip(found[part], reference[part])):
            if x == y or (x != x and y != y):
                continue
            first = first or f"{part}[{index}] is {x!r} instead of {y!r}"
            finite = math.isfinite(x) and math.isfinite(y)
            worst = max(worst, abs(x - y) / max(1.0, abs(y)) if finite else math.inf)
    return worst, first


def digest(values: Iterable[float]) -> str:
    """SHA-256 over the doubles, with one NaN and one zero."""
    # x + 0.0 turns -0.0 into 0.0.
    return hashlib.sha256(array("d", [x + 0.0 if x == x else math.nan for x in values]).tobytes()).hexdigest()


def prove(engine: engines.Engine, trainer: Trainer, job: Job) -> dict[str, Any]:
    """Compare the trainer with the job's reference. Raises Mismatch where the engine breaks its promise."""
    workload = workloads.load(job["workload"])
    found = evidence(trainer, batch=workload.batch, steps=job["proof_steps"])
    worst, first = compare(found, load_evidence(job["reference_file"]))
    promise = "identical bits" if engine.strict else f"an error of at most {engine.error_bound:g}"
    if first and (engine.strict or worst > (engine.error_bound or 0.0)):
        raise Mismatch(
            f"promises {promise} and differs from {job['reference_cell']} by {worst:.3g}: {first}, "
            f"within {job['proof_steps']} steps"
        )
    return {
        "parameters_sha256": digest(found["parameters"]),
        "proof": {
            "reference": job["reference_cell"],
            "steps": job["proof_steps"],
            "identical": not first,
            "worst_error": worst,
        },
    }


def load_evidence(path: str) -> Evidence:
    """What `make_reference` wrote there."""
    # Arrays, not lists: a reference's hundred thousand floats must not lie in the collector's way while others run.
    return {part: array("d", values) for part, values in json.loads(Path(path).read_text(encoding="utf-8")).items()}


def make_reference(job: Job) -> Outcome:
    """Write the job's reference file, from its engine's training."""
    workload = workloads.load(job["workload"])
    workload.data()
    trainer = engines.load(job["engine"]).prepare(workload)
    found = evidence(trainer, batch=workload.batch, steps=job["proof_steps"])
    write_json(job["reference_file"], {part: list(found[part]) for part in PARTS})
    return {"status": "measured", "parameters_sha256": digest(found["parameters"])}


if __name__ == "__main__":
    do_job(make_reference)
