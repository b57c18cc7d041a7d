"""Code -> its variants: the parts of a step that run for small batches, and those that run for larger ones.

The batch is fixed during a stretch of training, so only a part of the turn can ever run. A batch of one row takes no
rows together. In a larger batch, no row is alone. Each variant is the step with these conditions decided. All variants
have the same workspace. Other sections differ in one place only: if rows are taken together, no update is ever due, so
`leave` settles none.

Example: `if batches have 2 rows: A, end turn`, then `if alone: B else: C`, becomes `if alone: B else: C` for batches of
1. For all other batches it becomes `A`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zoomgrad.engines.graph.passes import CHECKED
from zoomgrad.engines.kernel.variants import Variant
from zoomgrad.engines.rerolled.step.check import check_step
from zoomgrad.engines.rerolled.step.language import EndTurn, Fact, If, Program, SetDue, Statement, facts
from zoomgrad.engines.rerolled.step.step import Step


def variants_of(code: Any) -> list[Variant]:
    """The variants in the order of their batches. Code that takes no rows together has one."""
    if not isinstance(code, Step) or Fact.BATCHED not in facts(code.programs.get("turn", ())):
        return [Variant("every batch", 1, code)]
    # Only rows that are alone defer an update, so without them no update ever waits.
    variants = [
        Variant("single rows", 1, _decided(code, {Fact.BATCHED: False})),
        Variant("rows together", 2, _decided(code, {Fact.BATCHED: True, Fact.ALONE: False, Fact.DUE: False})),
    ]
    if CHECKED:
        for variant in variants:
            check_step(variant.code)
    return variants


def _decided(step: Step, known: Mapping[Fact, bool]) -> Step:
    """The step with these conditions decided, and without routines that nothing runs then."""

    def change(statement: Statement) -> Program:
        if isinstance(statement, SetDue) and Fact.DUE in known:
            return ()
        if isinstance(statement, If) and statement.condition in known:
            return statement.then if known[statement.condition] else statement.otherwise
        return (statement,)

    step = step.rewritten(change)
    turn = step.programs["turn"]
    if EndTurn() in turn:  # nothing after it can run
        step = step.with_programs(turn=turn[: turn.index(EndTurn())])
    return step.pruned()
