"""Blocks of one cell -> one outcome. The only module that decides whether a cell has a result that may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from results import units
from results.record import Cell, EngineFacts, Proof, Record, Run
from results.stats.steady import classify, of_processes

MEASURED = "measured"
IDENTICAL = "identical bits"
UNSTEADY = "unsteady"
"""Status of a cell whose processes never settled: a mean would say how long they ran, not how fast the engine is."""
MISSING = "missing"
"""Status of a cell of the plan without any record: the run was interrupted before its turn."""


@dataclass(frozen=True)
class Outcome:
    """What the blocks of a cell amount to."""

    status: str
    bits: str
    """"identical", "within 1e-09" (a declared bound), "different" or "unchecked"."""
    worst_error: float
    """Largest error of its proofs; NaN where there is none."""
    reason: str = ""
    remedy: str = ""


def outcome(blocks: Sequence[Record], facts: EngineFacts | None) -> Outcome:
    """The first of these rules that holds decides:

    no block: missing; a failed block, or a proof that breaks the engine's promise: failed, since a wrong or flaky
    engine has no speed; a timed-out block: timed-out, since the blocks that remain are the fast ones and their median
    would flatter; a measured block: measured, or unsteady where most processes never settled; else skipped. facts:
    None counts as strict.
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
        restless = _restless(blocks)
        return Outcome(UNSTEADY, bits, worst_error, *restless) if restless else Outcome(MEASURED, bits, worst_error)
    return Outcome("skipped", bits, worst_error, blocks[0].reason, blocks[0].remedy)


def by_cell(run: Run, records: Iterable[Record]) -> dict[Cell, list[Record]]:
    """The records of every cell of the plan, in its order; those of cells outside it are left out."""
    found: dict[Cell, list[Record]] = {cell: [] for cell in run.cells}
    for record in records:
        if record.cell in found:
            found[record.cell].append(record)
    return found


def outcomes(run: Run, records: Iterable[Record]) -> dict[Cell, Outcome]:
    """The outcome of every cell of the plan."""
    return {cell: outcome(blocks, run.engines.get(cell.engine)) for cell, blocks in by_cell(run, records).items()}


def keeps_promise(proof: Proof, facts: EngineFacts | None) -> bool:
    """Whether a proof is what the engine promises: the same bits, or an error within its declared bound."""
    if proof.identical:
        return True
    bound = None if facts is None or facts.strict else facts.error_bound
    return bound is not None and proof.worst_error <= bound


def promise(facts: EngineFacts | None) -> str:
    """The promise in words: `IDENTICAL` for a strict engine, else its declared bound."""
    if facts is None or facts.strict:
        return IDENTICAL
    return "no bound declared" if facts.error_bound is None else f"within {facts.error_bound:g}"


def _bits(blocks: Sequence[Record], proofs: Sequence[Proof], facts: EngineFacts | None) -> str:
    if not all(keeps_promise(proof, facts) for proof in proofs):
        return "different"
    if not proofs or any(block.status == MEASURED and block.proof is None for block in blocks):
        return "unchecked"
    return "identical" if all(proof.identical for proof in proofs) else promise(facts)


def _restless(blocks: Sequence[Record]) -> tuple[str, str] | None:
    """Reason and remedy where most processes never settled; short sequences say nothing, a cycle has a mean."""
    measured = [block for block in blocks if block.status == MEASURED]
    found = [classify(block.warmup_step_seconds + block.step_seconds) for block in measured]
    kind = of_processes(found).kind
    if kind != "no steady state":
        return None
    never = sum(one.kind == kind for one in found)
    reason = f"never settled: values still changed at the end of {never} of {units.count(len(found), 'block')}"
    return reason, "Look at its run sequence; longer warm-ups may settle it."


def _with_share(stopped: Sequence[Record], blocks: Sequence[Record]) -> str:
    reason = stopped[0].reason
    return reason if len(stopped) == len(blocks) else f"{reason} (in {len(stopped)} of {len(blocks)} blocks)"


def _broken_promise(proofs: Sequence[Proof], facts: EngineFacts | None) -> str:
    proof = next(proof for proof in proofs if not keeps_promise(proof, facts))
    return (
        f"differs from {proof.reference} by up to {units.error(proof.worst_error)} "
        f"after {units.count(proof.steps, 'step')}; promised: {promise(facts)}"
    )
