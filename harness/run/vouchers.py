"""Which engine vouches for which: `tuple` for two engines that run straight-line code, one of those for all others.

`tuple` is micrograd with its children in order. It is simple enough to read and believe, but takes half a second a step
on `mnist`. So it vouches over a few steps for two engines whose code went through different compilers. They vouch for
each other over as many steps as a timed value takes, and every other engine is compared with the first of them.
Where a machine has no C compiler, generated Python and a bytecode interpreter take their place, over fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.containment import Limits
from harness.procedure import CANDIDATES, MOST_STEPS, TRUSTED, TRUSTED_SECONDS, TRUSTED_STEPS
from harness.run.isolate import Draw, Isolate
from harness.worker.evidence import Witness
from harness.worker.job import DamagedEvidence, VouchJob
from results.files import Unreadable
from results.record import Cell, PassedOver, Voucher, Vouching
from results.store import Store


class NoVouching(Exception):
    """Nobody can vouch for a workload: a record's status, reason and remedy, and the limit that was hit."""

    def __init__(self, status: str, reason: str, remedy: str, limit: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.remedy = remedy
        self.limit = limit


@dataclass(frozen=True)
class Vouchers:
    """Has the engines that vouch run on one interpreter, and keeps their evidence in a run's folder."""

    isolate: Isolate
    store: Store
    interpreter: str
    python: Callable[[], Path]
    """Of that interpreter's environment. Raises NoEnvironment."""
    seconds: float
    """About how long a candidate trains."""
    limits: Limits

    def vouching(self, workload: str, least_steps: int = 0) -> Vouching:
        """Who vouches for the workload's engines: what the run's folder says, else who does now.

        least_steps: the longest stretch that the run has timed already, which later blocks must repeat.
        Raises NoVouching, and NoEnvironment.
        """
        known = self._known(workload)
        if known:
            return known
        timeout_seconds = self.limits.timeout_seconds
        most_seconds = timeout_seconds / 4  # the worker has to start, prepare and write, too
        # Evidence that is made anew is not what an earlier vouching was about, until this one is complete.
        self.store.forget_vouching(workload)
        trusted, limit = self._ask(
            TRUSTED, workload, (), min(TRUSTED_SECONDS, self.seconds, most_seconds), TRUSTED_STEPS
        )
        if isinstance(trusted, PassedOver):
            raise NoVouching(trusted.status, _nobody(workload, [trusted]), trusted.remedy, limit)
        found, passed_over = [trusted], []
        for engine in CANDIDATES:
            # The second candidate goes as far as the first one went, if its time limit lets it.
            is_first = len(found) == 1
            seconds = min(self.seconds, most_seconds) if is_first else timeout_seconds / 2
            asked, _ = self._ask(engine, workload, found, seconds, MOST_STEPS if is_first else found[-1].steps)
            if is_first and isinstance(asked, Voucher) and asked.steps < least_steps:
                asked, _ = self._ask(engine, workload, found, timeout_seconds / 2, least_steps)
            if isinstance(asked, PassedOver):
                passed_over.append(asked)
            else:
                found.append(asked)
            if len(found) == 3:
                break
        else:
            raise NoVouching("failed", _nobody(workload, passed_over), passed_over[0].remedy)
        vouching = Vouching(workload=workload, vouchers=tuple(found), passed_over=tuple(passed_over))
        self.store.write_vouching(vouching)
        return vouching

    def _known(self, workload: str) -> Vouching | None:
        """What the run's folder says, unless it is damaged: then it is made again."""
        try:
            known = self.store.vouching(workload)
            if known is None:
                return None
            witness = Witness(self.store.evidence_folder(known.reference))
            witness.check()
        except (Unreadable, DamagedEvidence, OSError):
            return None
        is_complete = known.steps <= witness.steps and all(name in witness for name in known.drills)
        return known if is_complete else None

    def _ask(
        self, engine: str, workload: str, witnesses: Sequence[Voucher], seconds: float, steps: int
    ) -> tuple[Voucher | PassedOver, str]:
        """Have one engine vouch; gives its voucher and the limit that it hit.

        Raises NoVouching where its numbers differ from a witness's.
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
    """Why nobody can vouch. Missing data are the reason of every engine, so they are told as they are."""
    if len(passed_over) == 1 and passed_over[0].status == "skipped":
        return passed_over[0].reason
    reasons = "; ".join(f"{one.engine}: {one.reason}" for one in passed_over)
    return f"no two engines can vouch for the others on {workload}: {reasons}"
