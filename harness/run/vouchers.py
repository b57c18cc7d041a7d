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

from zoomgrad.harness.containment import Limits
from zoomgrad.harness.procedure import CANDIDATES, MOST_STEPS, TRUSTED, TRUSTED_SECONDS, TRUSTED_STEPS
from zoomgrad.harness.run.isolate import Draw, Isolate
from zoomgrad.harness.worker.evidence import Witness
from zoomgrad.harness.worker.job import DamagedEvidence, VouchJob
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import Cell, PassedOver, Voucher, Vouching
from zoomgrad.results.store import Store


class NoVouching(Exception):
    """No engine can vouch for a workload. Holds a record's status, reason, remedy and limit."""

    def __init__(self, status: str, reason: str, remedy: str, limit: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.remedy = remedy
        self.limit = limit


@dataclass(frozen=True)
class Vouchers:
    """Runs the vouching engines on one interpreter, and stores their evidence in the run's folder."""

    isolate: Isolate
    store: Store
    interpreter: str
    python: Callable[[], Path]
    """Path of the Python in that interpreter's environment. Raises NoEnvironment."""
    seconds: float
    """Approximate training time of a candidate."""
    limits: Limits
    values: int
    """Timed values of a process. Each needs a start of its own."""

    def vouching(self, workload: str, least_steps: int = 0) -> Vouching:
        """The cells that vouch for the workload's engines: those in the run's folder, or else determined now.

        least_steps: the longest stretch that the run has timed so far, which later blocks must repeat.
        Raises NoVouching and NoEnvironment.
        """
        known = self._known(workload)
        if known:
            return known
        timeout_seconds = self.limits.timeout_seconds
        most_seconds = timeout_seconds / 4  # leaves time to start, prepare and write
        # New evidence would contradict an earlier vouching until this one is complete.
        self.store.forget_vouching(workload)
        trusted, limit = self._ask(
            TRUSTED, workload, (), min(TRUSTED_SECONDS, self.seconds, most_seconds), TRUSTED_STEPS
        )
        if isinstance(trusted, PassedOver):
            raise NoVouching(trusted.status, _nobody(workload, [trusted]), trusted.remedy, limit)
        found, passed_over, limits = [trusted], [], []
        for engine in CANDIDATES:
            # The second candidate trains as many steps as the first one, if its time limit permits.
            is_first = len(found) == 1
            seconds = min(self.seconds, most_seconds) if is_first else timeout_seconds / 2
            most, starts = (MOST_STEPS, self.values) if is_first else (found[-1].steps, 0)
            asked, limit = self._ask(engine, workload, found, seconds, most, starts)
            if is_first and isinstance(asked, Voucher) and asked.steps < least_steps:
                asked, limit = self._ask(engine, workload, found, timeout_seconds / 2, least_steps, starts)
            if isinstance(asked, PassedOver):
                passed_over.append(asked)
                limits.append(limit)
            else:
                found.append(asked)
            if len(found) == 3:
                break
        else:
            raise NoVouching("failed", _nobody(workload, passed_over), passed_over[0].remedy, limits[0])
        vouching = Vouching(workload=workload, vouchers=tuple(found), passed_over=tuple(passed_over))
        self.store.write_vouching(vouching)
        return vouching

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
        return known if is_complete and len(witness.starts(1)) >= self.values else None

    def _ask(
        self, engine: str, workload: str, witnesses: Sequence[Voucher], seconds: float, steps: int, starts: int = 0
    ) -> tuple[Voucher | PassedOver, str]:
        """Ask one engine to vouch. Return its voucher, or why it was passed over and the limit that it hit.

        Raises NoVouching if its numbers differ from a witness's.
        """
        cell = Cell(engine=engine, interpreter=self.interpreter, workload=workload)
        job: VouchJob = {
            "engine": engine,
            "workload": workload,
            "reply_file": "",
            "witnesses": {v.cell.key: str(self.store.evidence_folder(v.cell).absolute()) for v in witnesses},
            "folder": str(self.store.evidence_folder(cell).absolute()),
            "seconds": seconds,
            "steps": steps,
            "starts": starts,
        }
        answer = self.isolate("vouch", self.python(), job, limits=self.limits, draw=Draw())
        reply = answer.reply
        if reply.get("disagrees"):
            raise NoVouching("failed", reply["reason"], reply["remedy"])
        if reply["status"] != "measured":
            passed_over = PassedOver(
                engine=engine, status=reply["status"], reason=reply["reason"], remedy=reply.get("remedy", "")
            )
            return passed_over, reply.get("limit", "")
        voucher = Voucher(
            cell=cell,
            checked_by=tuple(witness.cell.key for witness in witnesses),
            drills=tuple(reply["drills"]),
            steps=reply["steps"],
            worker_seconds=answer.seconds,
        )
        return voucher, ""


def _nobody(workload: str, passed_over: Sequence[PassedOver]) -> str:
    """Reason why no engine can vouch. Missing data affects every engine, so its own reason is enough."""
    if len(passed_over) == 1 and passed_over[0].status == "skipped":
        return passed_over[0].reason
    reasons = "; ".join(f"{one.engine}: {one.reason}" for one in passed_over)
    return f"no two engines can vouch for the others on {workload}: {reasons}"
