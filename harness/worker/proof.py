"""Correctness check: compare an engine's losses, gradients and parameters with the engine that vouches for it.

The proof covers the timed path: every timed stretch is compared with the reference over the same steps from the same
start, on the same kernel. Compiled engines first go through drills, which reach paths that the timed stretch may miss.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from zoomgrad.engines.graph.arithmetic import check_arithmetic
from zoomgrad.engines.row import Row
from zoomgrad.engines.training import Trainer
from zoomgrad.harness.procedure import most_bounded_steps
from zoomgrad.harness.worker.evidence import Evidence, Witness, compare, drill, drills, name_of, power_of_two
from zoomgrad.harness.worker.job import DamagedEvidence, Job, Mismatch
from zoomgrad.harness.workloads import Workload


class Proof:
    """Comparison of one engine with the reference."""

    def __init__(self, engine: Row, job: Job, *, batch: int) -> None:
        self._engine = engine
        self._witness = Witness(Path(job["reference_folder"]))
        self._drills = job["reference_drills"]
        self.figure: dict[str, Any] = {
            "reference": job["reference_cell"],
            "steps": 0,
            "stretches": 0,
            "seconds": 0.0,
            "identical": True,
            "worst_error": 0.0,
        }
        """What was compared so far, as a record holds it."""
        most = job["reference_steps"] if engine.strict else min(job["reference_steps"], most_bounded_steps(batch))
        self.steps = power_of_two(most)
        """Steps of the longest stretch over which the engine can be compared, with a start for each timed value."""
        while self.steps and len(self.starts(self.steps)) < job["values"]:
            self.steps //= 2
        if not self.steps:
            raise DamagedEvidence(
                f"{job['reference_cell']} trained from too few starts for {job['values']} different values\n"
                "  Remove the run's evidence folder, then resume the run, which makes it again."
            )

    def starts(self, steps: int) -> list[int]:
        """Starts, apart from 0, from which the reference trained that many steps."""
        return self._witness.starts(steps)

    def drill(self, trainer: Trainer, workload: Workload) -> None:
        """Run every drill that was vouched for, and compare. Raises Mismatch."""
        start = perf_counter()
        for how in drills(workload):
            if how.name in self._drills:
                self._compare(how.name, drill(trainer, workload, how), f"in the drill {how.name!r}")
        self.figure["seconds"] += perf_counter() - start

    def stretch(self, steps: int, start: int, actual: Evidence) -> None:
        """Compare a stretch of that length from that start. actual: what was read before its clock stopped.

        Raises Mismatch.
        """
        clock = perf_counter()
        self._compare(name_of(steps, start), actual, f"within {steps:,} steps{f' from start {start}' if start else ''}")
        self.figure["steps"] = max(self.figure["steps"], steps)
        self.figure["stretches"] += 1
        self.figure["seconds"] += perf_counter() - clock

    def _compare(self, name: str, actual: Evidence, where: str) -> None:
        """Compare with the reference's evidence of that name. Raises Mismatch."""
        check_arithmetic()
        engine, figure = self._engine, self.figure
        worst, first = compare(actual, self._witness.evidence(name))
        figure["worst_error"] = max(figure["worst_error"], worst)
        figure["identical"] = figure["identical"] and not first
        if first and (engine.strict or not worst <= (engine.error_bound or 0.0)):
            promise = "identical bits" if engine.strict else f"an error of at most {engine.error_bound:g}"
            raise Mismatch(
                f"promises {promise}, but differs from {figure['reference']} by up to {worst:.3g}; "
                f"first, {first}, {where}\n"
                "  A wrong result has no speed: fix the engine."
            )


def prepare_proof(engine: Row, trainer: Trainer, workload: Workload, job: Job) -> Proof:
    """Before any timing, check the processor's floating-point mode, and drill compiled engines.

    Interpreted engines are not drilled: a step may take a second, and they have no kernel with special paths. The timed
    steps prove them. Raises Mismatch and ChangedArithmetic.
    """
    check_arithmetic()
    proof = Proof(engine, job, batch=workload.batch)
    if engine.typical_row_seconds[1]:
        proof.drill(trainer, workload)
    return proof
