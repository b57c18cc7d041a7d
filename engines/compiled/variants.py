"""Code -> the variants that are emitted, built and loaded one by one."""

from __future__ import annotations

from typing import Any

from zoomgrad.engines.kernel.variants import Variant
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.rerolled.step.variants import variants


def variants_of(code: Any) -> list[Variant]:
    """The code's variants in the order of their batches. The first one begins with batches of 1."""
    return [Variant(*each) for each in variants(code)] if isinstance(code, Step) else [Variant("every batch", 1, code)]
