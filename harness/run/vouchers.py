"""Decide which engine vouches for which: `tuple` for two straight-line engines, and one of those for all others.

`tuple` is micrograd with ordered children. Its code is simple enough to be trusted, but a step of `mnist` takes half a
second. So it vouches over a few steps for two engines whose code went through different compilers. These vouch for each
other over as many steps as a timed value takes, and every other engine is compared with the first of them. No two timed
values are the same work, so the first one trains from other starting parameters too. On a machine without a C compiler,
generated Python and a bytecode interpreter take their place, over fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from zoomgrad.harness.procedure import CANDIDATES, MOST_STEPS, TRUSTED, TRUSTED_SECONDS, TRUSTED_STEPS
from zoomgrad.harness.run.isolate import Isolate
from zoomgrad.harness.run.replies import NoResult
from zoomgrad.harness.worker.evidence import Witness
from zoomgrad.harness.worker.job import DamagedEvidence, VouchJob
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import Cell, PassedOver, Run, Voucher, Vouching
from zoomgrad.results.store import Store

VOUCHERS = 3
"""The trusted engine and two candidates."""


@dataclass(frozen=True)
class Vouchers:
    """Runs the vouching engines on the reference interpreter, and stores their evidence in the run's folder."""

    isolate: Isolate
    store: Store
    run: Run
    python: Callable[[], Path]
    """Path of the Python in that interpreter's environment. Raises NoEnvironment."""

    def vouching(self, workload: str) -> Vouching:
        """The cells that vouch for the workload's engines: those in the run's folder, or else determined now.

        Raises NoResult and NoEnvironment.
        """
        return self._known(workload) or self._determined(workload)

    def _determined(self, workload: str) -> Vouching:
        vouchers: list[Voucher] = []
        passed_over: dict[str, NoResult] = {}
        records = (record for record in self.store.records() if record.cell.workload == workload)
        timed = max((record.stretch_steps for record in records), default=0)
        # New evidence would contradict an earlier vouching until this one is complete.
        self.store.forget_vouching(workload)
        for engine in (TRUSTED, *CANDIDATES):
            try:
                voucher = self._ask(engine, workload, vouchers, *self._extent(vouchers))
                if len(vouchers) == 1 and voucher.steps < timed:  # later blocks must repeat the longest stretch so far
                    voucher = self._ask(engine, workload, vouchers, *self._extent(vouchers, timed))
                vouchers.append(voucher)
            except NoResult as none:
                if none.disagrees:
                    raise
                passed_over[engine] = none
            if len(vouchers) == VOUCHERS or TRUSTED in passed_over:
                break
        if len(vouchers) < VOUCHERS:
            raise _nobody(workload, passed_over)
        others = tuple(PassedOver.model_validate({"engine": name, **none.why}) for name, none in passed_over.items())
        vouching = Vouching(workload=workload, vouchers=tuple(vouchers), passed_over=others)
        self.store.write_vouching(vouching)
        return vouching

    def _extent(self, vouchers: Sequence[Voucher], steps: int = 0) -> tuple[float, int, int]:
        """Seconds, most steps, and other starts of the training of the next engine.

        steps: those of the first candidate, however long they take; 0 for as many as it has time for.
        """
        settings = self.run.settings
        patience = settings.timeout_seconds / 2  # leaves time to start, prepare and write
        seconds = min(settings.vouch_seconds, patience / 2)
        if not vouchers:
            return min(TRUSTED_SECONDS, seconds), TRUSTED_STEPS, 0
        if len(vouchers) == 2:  # it trains as many steps as the first candidate, if its time limit permits
            return patience, vouchers[1].steps, 0
        return (patience, steps, settings.values) if steps else (seconds, MOST_STEPS, settings.values)

    def _known(self, workload: str) -> Vouching | None:
        """The vouching in the run's folder; None if it is missing, incomplete or damaged."""
        try:
            known = self.store.vouching(workload)
            if known is None:
                return None
            witness = Witness(self.store.evidence_folder(known.reference))
            witness.check()
        except (Unreadable, DamagedEvidence, OSError):
            return None
        is_complete = known.steps <= witness.steps and all(name in witness for name in known.drills)
        return known if is_complete and len(witness.starts(1)) >= self.run.settings.values else None

    def _ask(
        self, engine: str, workload: str, witnesses: Sequence[Voucher], seconds: float, steps: int, starts: int
    ) -> Voucher:
        """Ask one engine to vouch. Raises NoResult if it can't, or if its numbers differ from a witness's."""
        cell = Cell(engine=engine, interpreter=self.run.reference_interpreter, workload=workload)
        job: VouchJob = {
            "engine": engine,
            "workload": workload,
            "witnesses": {v.cell.key: str(self.store.evidence_folder(v.cell).absolute()) for v in witnesses},
            "folder": str(self.store.evidence_folder(cell).absolute()),
            "seconds": seconds,
            "steps": steps,
            "starts": starts,
        }
        answer = self.isolate("vouch", self.python(), job, settings=self.run.settings, draw=0)
        if answer.reply["status"] != "measured":
            raise NoResult(**answer.reply)
        return Voucher(
            cell=cell, drills=tuple(answer.reply["drills"]), steps=answer.reply["steps"], worker_seconds=answer.seconds
        )


def _nobody(workload: str, passed_over: dict[str, NoResult]) -> NoResult:
    """Why no engine can vouch. Missing data affects every engine, so its own reason is enough."""
    first = next(iter(passed_over.values()))
    if TRUSTED in passed_over and first.why["status"] == "skipped":
        return first
    reasons = "; ".join(f"{engine}: {none}" for engine, none in passed_over.items())
    reason = f"no two engines can vouch for the others on {workload}: {reasons}"
    return NoResult("failed", reason, first.remedy, first.limit)
