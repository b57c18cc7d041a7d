"""Blocks of one cell -> one outcome. This module alone decides whether a cell has a result to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zoomgrad.results import units
from zoomgrad.results.record import Cell, EngineFacts, Proof, Record, Run

MEASURED = "measured"
IDENTICAL = "identical bits"
MISSING = "missing"
"""Status of a planned cell without a record: the run was interrupted before its turn."""


@dataclass(frozen=True)
class Outcome:
    """The result of a cell's blocks, or the reason why there is none."""

    status: str
    bits: str
    """"identical", "within 1e-09" (a declared bound), "different" or "unchecked"."""
    worst_error: float
    """Largest error of the cell's proofs; NaN if there is no proof."""
    reason: str = ""
    remedy: str = ""


def outcome(blocks: Sequence[Record], facts: EngineFacts | None) -> Outcome:
    """Return the outcome by the first rule that applies.

    No block: missing. A failed block: failed, because a flaky engine has no speed. A timed-out block: timed-out,
    because only its fast blocks remain, whose median would flatter it. A measured block: failed if a proof breaks the
    engine's promise, because a wrong engine has no speed either; else measured. Anything else: skipped.

    facts: None counts as strict.
    """
    proofs = [block.proof for block in blocks if block.proof is not None]
    worst_error = max((proof.worst_error for proof in proofs), default=float("nan"))
    bits = _bits(blocks, proofs, facts)
    if not blocks:
        return Outcome(
            MISSING,
            bits,
            worst_error,
            reason="never run: the run was interrupted before this cell's turn",
            remedy="Resume the run.",
        )
    for status in ("failed", "timed-out"):
        stopped = [block for block in blocks if block.status == status]
        if stopped:
            return Outcome(status, bits, worst_error, _with_share(stopped, blocks), stopped[0].remedy)
    if any(block.status == MEASURED for block in blocks):
        if bits == "different":
            return Outcome("failed", bits, worst_error, _broken_promise(proofs, facts), "Its time is not shown.")
        return Outcome(MEASURED, bits, worst_error)
    return Outcome("skipped", bits, worst_error, blocks[0].reason, blocks[0].remedy)


def by_cell(run: Run, records: Iterable[Record]) -> dict[Cell, list[Record]]:
    """Group records by planned cell, in plan order. Records of other cells are left out."""
    blocks: dict[Cell, list[Record]] = {cell: [] for cell in run.cells}
    for record in records:
        if record.cell in blocks:
            blocks[record.cell].append(record)
    return blocks


def outcomes(run: Run, records: Iterable[Record]) -> dict[Cell, Outcome]:
    """Return the outcome of every planned cell."""
    return {cell: outcome(blocks, run.engines.get(cell.engine)) for cell, blocks in by_cell(run, records).items()}


def keeps_promise(proof: Proof, facts: EngineFacts | None) -> bool:
    """Whether a proof shows what the engine promises: identical bits, or an error within its declared bound."""
    if proof.identical:
        return True
    bound = None if facts is None or facts.strict else facts.error_bound
    return bound is not None and proof.worst_error <= bound


def promise(facts: EngineFacts | None) -> str:
    """Return the promise as text: `IDENTICAL` for a strict engine, else its declared bound."""
    if facts is None or facts.strict:
        return IDENTICAL
    return "no bound declared" if facts.error_bound is None else f"within {facts.error_bound:g}"


def _bits(blocks: Sequence[Record], proofs: Sequence[Proof], facts: EngineFacts | None) -> str:
    if not all(keeps_promise(proof, facts) for proof in proofs):
        return "different"
    if not proofs or any(block.status == MEASURED and block.proof is None for block in blocks):
        return "unchecked"
    return "identical" if all(proof.identical for proof in proofs) else promise(facts)


def _with_share(stopped: Sequence[Record], blocks: Sequence[Record]) -> str:
    reason = stopped[0].reason
    return reason if len(stopped) == len(blocks) else f"{reason} (in {len(stopped)} of {len(blocks)} blocks)"


def _broken_promise(proofs: Sequence[Proof], facts: EngineFacts | None) -> str:
    proof = next(proof for proof in proofs if not keeps_promise(proof, facts))
    return (
        f"differs from {proof.reference} by up to {units.error(proof.worst_error)} "
        f"after {units.count(proof.steps, 'step')}; promised: {promise(facts)}"
    )
