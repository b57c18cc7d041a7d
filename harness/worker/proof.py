"""Correctness check: compare an engine's losses, gradients and parameters with the engine that vouches for it.

The proof covers the timed path: every timed stretch is compared with the reference over the same steps from the same
start, on the same kernel. Compiled engines first go through drills, which reach paths that the timed stretch may miss.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from zoomgrad.engines import Engine
from zoomgrad.engines.api import Trainer, Workload
from zoomgrad.engines.graph.arithmetic import check_arithmetic
from zoomgrad.harness.procedure import most_bounded_steps
from zoomgrad.harness.worker.evidence import Evidence, Witness, compare, drill, drills, name_of, power_of_two
from zoomgrad.harness.worker.job import DamagedEvidence, Job, Mismatch, check_built


class Proof:
    """Comparison of one engine with the reference, with counts of what was compared."""

    def __init__(self, engine: Engine, job: Job, *, batch: int) -> None:
        self._engine = engine
        self._witness = Witness(Path(job["reference_folder"]))
        self._reference_cell = job["reference_cell"]
        self._drills = job["reference_drills"]
        most = job["reference_steps"] if engine.strict else min(job["reference_steps"], most_bounded_steps(batch))
        self.steps = self._longest(most, job["values"])
        """Steps of the longest stretch over which the engine can be compared."""
        self.worst_error = 0.0
        self.identical = True
        self.stretch_steps = 0
        self.stretches = 0
        self.seconds = 0.0

    def _longest(self, most: int, values: int) -> int:
        """Length of the longest stretch of at most `most` steps that has a start for each timed value.

        Raises DamagedEvidence if there is none.
        """
        steps = power_of_two(most)
        while steps and len(self.starts(steps)) < values:
            steps //= 2
        if not steps:
            raise DamagedEvidence(
                f"{self._reference_cell} trained from too few starts for {values} different values\n"
                "  Remove the run's evidence folder, then resume the run, which makes it again."
            )
        return steps

    def starts(self, steps: int) -> list[int]:
        """Starts, apart from 0, from which the reference trained that many steps."""
        return self._witness.starts(steps)

    def drill(self, trainer: Trainer, workload: Workload) -> None:
        """Run every drill that was vouched for, and compare. Raises Mismatch."""
        start = perf_counter()
        for how in drills(workload):
            if how.name in self._drills:
                self._compare(how.name, drill(trainer, workload, how), f"in the drill {how.name!r}")
        self.seconds += perf_counter() - start

    def stretch(self, trainer: Trainer, steps: int, start: int, actual: Evidence) -> None:
        """Compare a stretch of that length from that start. actual: what was read before its clock stopped.

        Raises Mismatch, and Misbehaved if the stretch ran code that `prepare` did not build.
        """
        check_built(self._engine, trainer)
        clock = perf_counter()
        self.stretch_steps = max(self.stretch_steps, steps)
        self.stretches += 1
        self._compare(name_of(steps, start), actual, f"within {steps:,} steps{f' from start {start}' if start else ''}")
        self.seconds += perf_counter() - clock

    def _compare(self, name: str, actual: Evidence, where: str) -> None:
        """Compare with the reference's evidence of that name. Raises Mismatch."""
        check_arithmetic()
        reference = self._witness.evidence(name)
        worst, first = compare(actual, reference)
        engine = self._engine
        self.worst_error = max(self.worst_error, worst)
        self.identical = self.identical and not first
        if first and (engine.strict or not worst <= (engine.error_bound or 0.0)):
            promise = "identical bits" if engine.strict else f"an error of at most {engine.error_bound:g}"
            raise Mismatch(
                f"promises {promise}, but differs from {self._reference_cell} by up to {worst:.3g}; "
                f"first, {first}, {where}\n"
                "  A wrong result has no speed: fix the engine."
            )

    def figure(self) -> dict[str, Any]:
        """The proof, as a record holds it."""
        return {
            "reference": self._reference_cell,
            "steps": self.stretch_steps,
            "stretches": self.stretches,
            "seconds": self.seconds,
            "identical": self.identical,
            "worst_error": self.worst_error,
        }


def prepare_proof(engine: Engine, trainer: Trainer, workload: Workload, job: Job) -> Proof:
    """Before any timing, check the processor's floating-point mode, and drill compiled engines.

    Interpreted engines are not drilled: a step may take a second, and they have no kernel with special paths. The timed
    steps prove them. Raises Mismatch and ChangedArithmetic.
    """
    check_arithmetic()
    proof = Proof(engine, job, batch=workload.batch)
    if engine.typical_compile_row_seconds:
        proof.drill(trainer, workload)
    return proof
