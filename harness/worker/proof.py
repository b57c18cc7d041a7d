"""Correctness check: compare an engine's losses, gradients and parameters with the engine that vouches for it.

The proof covers the timed path: every timed value is compared with the reference over the same steps, on the same
kernel. Compiled engines first go through drills, which reach paths that the timed stretch may miss.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

from engines import Engine
from engines.api import Trainer, Workload
from engines.arithmetic import check_arithmetic
from harness.worker.evidence import Evidence, Witness, compare, drill, drills, left_by
from harness.worker.figures import check_built
from harness.worker.job import Job, Mismatch

MOST_BOUNDED_STEPS = 256
"""Longest stretch of an engine that declares an error bound. Training is chaotic: on `mnist`, the different rounding of
`rerolled-clang-fast` grows to 4e-13 after 256 steps, 1e-9 after 1,024, and 9 after 8,192."""

MOST_BOUNDED_BATCHES = 16
"""In large batches, its stretch may be this many batches instead. Errors grow from one update to the next."""


def most_bounded_steps(batch: int) -> int:
    """Longest stretch, in steps, of an engine that declares an error bound."""
    return max(MOST_BOUNDED_STEPS, MOST_BOUNDED_BATCHES * batch)


class Proof:
    """Comparison of one engine with the reference, with counts of what was compared."""

    def __init__(self, engine: Engine, job: Job, *, batch: int) -> None:
        self._engine = engine
        self._witness = Witness(Path(job["reference_folder"]))
        self._reference_cell = job["reference_cell"]
        self._drills = job["reference_drills"]
        self._known: dict[str, Evidence] = {}
        self._compared: tuple[bytes, ...] = ()
        self.steps = job["reference_steps"] if engine.strict else min(job["reference_steps"], most_bounded_steps(batch))
        """Steps of the longest stretch over which the engine can be compared."""
        self.worst_error = 0.0
        self.identical = True
        self.stretch_steps = 0
        self.stretches = 0
        self.seconds = 0.0
        self._parameters = array("d")

    def drill(self, trainer: Trainer, workload: Workload) -> None:
        """Run every drill that was vouched for, and compare. Raises Mismatch."""
        start = perf_counter()
        for how in drills(workload):
            if how.name in self._drills:
                self._compare(how.name, drill(trainer, workload, how), f"in the drill {how.name!r}")
        self.seconds += perf_counter() - start

    def stretch(self, trainer: Trainer, steps: int) -> None:
        """Compare the stretch that the trainer has run since its restart.

        Raises Mismatch, and Misbehaved if the stretch ran code that `prepare` did not build.
        """
        check_built(self._engine, trainer)
        start = perf_counter()
        self.stretch_steps = steps
        self.stretches += 1
        found = left_by(trainer)
        self._compare(str(self.stretch_steps), found, f"within {self.stretch_steps:,} steps")
        self._parameters = found.parameters
        self.seconds += perf_counter() - start

    def _compare(self, name: str, found: Evidence, where: str) -> None:
        check_arithmetic()
        if name not in self._known:
            self._known, self._compared = {name: self._witness.evidence(name)}, ()
        # An engine that rounds differently is compared number by number, but most engines repeat the same numbers.
        doubles = tuple(part.tobytes() for part in found)
        if doubles == self._compared:
            return
        self._compared = doubles
        worst, first = compare(found, self._known[name])
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

    def fields(self) -> dict[str, Any]:
        """Fields of the proof for the record."""
        return {
            "parameters_sha256": digest(self._parameters),
            "proof": {
                "reference": self._reference_cell,
                "steps": self.stretch_steps,
                "stretches": self.stretches,
                "seconds": self.seconds,
                "identical": self.identical,
                "worst_error": self.worst_error,
            },
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


def digest(values: Iterable[float]) -> str:
    """SHA-256 of the doubles, with all NaNs and both zeros made equal."""
    # x + 0.0 turns -0.0 into 0.0.
    return hashlib.sha256(array("d", [x + 0.0 if x == x else math.nan for x in values]).tobytes()).hexdigest()
