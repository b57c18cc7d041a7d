"""Rearrangements of the training step, Step -> Step, one per file. Each keeps every bit.

`REARRANGEMENTS` is in running order, because each one builds on the results of earlier ones. An engine's form selects
among them.
"""

from __future__ import annotations

from zoomgrad.engines.graph.check import CHECKED
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.deferred import defer_updates
from zoomgrad.engines.rerolled.rearrange.from_panels import read_from_panels
from zoomgrad.engines.rerolled.rearrange.in_place import update_in_place
from zoomgrad.engines.rerolled.rearrange.in_rounds import run_in_rounds
from zoomgrad.engines.rerolled.rearrange.in_strips import store_in_strips
from zoomgrad.engines.rerolled.rearrange.together import take_rows_together
from zoomgrad.engines.rerolled.rearrange.transposed import transpose
from zoomgrad.engines.rerolled.rearrange.whole_batches import update_with_whole_batches
from zoomgrad.engines.rerolled.rearrange.zeros import skip_zeros
from zoomgrad.engines.rerolled.step.check import check_step
from zoomgrad.engines.rerolled.step.step import Step

REARRANGEMENTS = {
    "in place": update_in_place,
    "zeros skipped": skip_zeros,
    "deferred": defer_updates,
    "rows together": take_rows_together,
    "whole batches": update_with_whole_batches,
    "from panels": read_from_panels,
    "transposed": transpose,
    "in strips": store_in_strips,
    "in rounds": run_in_rounds,
}


def rearrange(step: Step, form: Form) -> Step:
    """Make the rearrangements that the form names."""
    for name, rearranged in REARRANGEMENTS.items():
        if name in form.rearrangements:
            step = rearranged(step, form)
            if CHECKED:
                check_step(step)
    return step
