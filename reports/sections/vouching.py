"""Vouchings and records -> sentences: which engines vouch for which results, over how many steps, at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.text.figures import share
from zoomgrad.results import units
from zoomgrad.results.record import Record, Voucher, Vouching

BEFORE_TIMING = (
    "Before a cell was timed, its losses, gradients and parameters over a few steps were compared with the reference "
    "engine's. Identical means that every double is the same."
)
"""For runs without vouchings."""
WHILE_TIMING = (
    "A time is shown only if the losses, gradients and parameters of every timed value equal those of an engine that "
    "vouches for them, over the same steps, or lie within the error bound that the engine declares. Identical means "
    "that every double is the same, except for the sign of a zero and the bits of a NaN. A drill is a short training "
    "on few rows that reaches code which the timed steps may miss."
)


def vouched(vouchings: Sequence[Vouching], records: Iterable[Record]) -> tuple[str, ...]:
    """Describe the proofs: what was compared, who vouches on each workload, and what comparing took."""
    if not vouchings:
        return (BEFORE_TIMING,)
    return (WHILE_TIMING, *map(_who, vouchings), *_compared(vouchings, list(records)))


def _who(vouching: Vouching) -> str:
    trusted, *others = vouching.vouchers
    names = " and ".join(one.cell.engine for one in others)
    reference = vouching.reference.engine
    passed_over = "".join(f" {one.engine} was passed over: {one.reason}." for one in vouching.passed_over)
    together = _text(len(vouching.drills), vouching.steps)
    return (
        f"{vouching.workload}: {trusted.cell.engine} vouches for {names} over {_over(trusted)}. These vouch for each "
        f"other over {together}, and {reference} vouches for every other engine.{passed_over}"
    )


def _over(voucher: Voucher) -> str:
    return _text(len(voucher.drills), voucher.steps)


def _text(drills: int, steps: int) -> str:
    return f"{units.count(drills, 'drill')} and the first {f'{steps:,} steps' if steps > 1 else 'step'} of training"


def _compared(vouchings: Sequence[Vouching], records: Sequence[Record]) -> Iterator[str]:
    proven = [record for record in records if record.status == MEASURED and record.proof]
    proofs = [record.proof for record in proven if record.proof]
    if not proofs:
        return
    steps = [proof.steps for proof in proofs]
    vouching = sum(voucher.worker_seconds for one in vouchings for voucher in one.vouchers)
    spent = vouching + sum(proof.seconds for proof in proofs)
    whole = vouching + sum(record.worker_seconds for record in records)
    yield (
        f"{sum(proof.stretches for proof in proofs):,} timed stretches were compared, each of {min(steps):,} to "
        f"{units.count(max(steps), 'step')}. Vouching and comparing took {share(spent / whole)} of the run."
    )
