"""Code -> its variants: the parts of a step that run for small batches, and those that run for larger ones.

The batch is fixed during a stretch of training, so only one of `turn` and `together` can ever run. All variants have
the same workspace. Other sections differ in one place only: if rows are taken together, no update is ever due, and
`leave` settles none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from zoomgrad.engines.rerolled.step.language import Fact, If
from zoomgrad.engines.rerolled.step.step import Step


class Variant(NamedTuple):
    """Code of a kernel that is fast for some batches."""

    name: str
    from_batch: int
    """The smallest batch that this variant serves. The next variant takes over at its own `from_batch`."""
    code: Any

    def __str__(self) -> str:
        return f"{self.name}, for batches from {self.from_batch} up"


def variant_for(batch: int, variants: Sequence[Variant]) -> Variant:
    """The variant to train with that batch."""
    return next((variant for variant in reversed(variants) if variant.from_batch <= batch), variants[0])


def variants_of(code: Any) -> list[Variant]:
    """The variants in the order of their batches. Code that takes no rows together has one."""
    if not isinstance(code, Step) or "together" not in code.programs:
        return [Variant("every batch", 1, code)]
    single = {name: program for name, program in code.programs.items() if name != "together"}
    leave = tuple(s for s in single["leave"] if not (isinstance(s, If) and s.condition == Fact.DUE))
    together = {**single, "turn": code.programs["together"], "leave": leave}
    return [
        Variant("single rows", 1, replace(code, programs=single, own=None).pruned()),
        Variant("rows together", 2, replace(code, programs=together).pruned()),
    ]
