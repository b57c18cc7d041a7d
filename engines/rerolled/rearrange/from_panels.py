"""From panels: a loop for many rows copies the numbers that its tiles share, and the tiles read the copy.

All tiles of a strip read the same lanes of a matrix, row after row. In a layer of 512 units, the rows are a page of
memory apart, and a processor prefetches within a page only. If the weights are larger than the second-level cache,
the first tile of each strip waits for every row. So the loop first copies these lanes of all rows side by side, to a
*panel*, which is prefetched, and stays in nearer caches for all tiles of the strip. A tile adds the same terms
in the same order, so no bit changes.

Example: loop 0 of `mlp-784x512x10-b100` reads `p[520 + j + 520*t]` for 784 terms t. In tiles of 8 lanes, its panel has
784 rows of 8 numbers. For lanes 8 to 15, row t is a copy of p[520 + 8 + 520*t] to p[520 + 15 + 520*t].

Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, which calls it packing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.recover.loops import Access, Loop
from zoomgrad.engines.rerolled.step.language import Panel, Run
from zoomgrad.engines.rerolled.step.step import Step

PAGE = 512
"""Doubles in a page of memory."""


def read_from_panels(step: Step, form: Form) -> Step:
    """Give loops over rows a panel for the operand that all tiles of a strip read."""
    is_far = form.is_beyond_cache(step.loops.parameters)
    panels = {run: panel for runs in step.routines.values() for run in runs if (panel := _panel(step, run, is_far))}
    if not panels:
        return step
    terms = max(run.loop.segments[panel.segment].counts[0] for run, panel in panels.items())
    size = step.whole_vectors(terms * form.strip)
    step, area = step.with_area("panel", form.threads * size)
    placed = {run: replace(run, panel=Panel(*panel[:2], area.start, size)) for run, panel in panels.items()}
    for name, runs in step.routines.items():
        step = step.with_routine(name, (placed.get(run, run) for run in runs))
    return step


def _panel(step: Step, run: Run, is_far: bool) -> Optional[Panel]:
    """A panel, without its place, for an operand that all tiles share.

    is_far: whether the weights are beyond the second-level cache. The factors of a sink's rows are apart in any case.
    """
    if run.rows == 1 or (run.is_live and not run.sums_rows):
        return None
    for number, segment in enumerate(run.loop.segments):
        for slot, operand in enumerate(segment.operands):
            if isinstance(operand, Access) and operand.lanes == (0, 1) and len(operand.terms) == 1:
                (stride,) = operand.terms
                if isinstance(stride, int) and stride >= PAGE and (is_far or run.sums_rows):
                    return Panel(number, slot)
    return turned(step, run.loop)


def turned(step: Step, loop: Loop) -> Optional[Panel]:
    """A panel for an operand that all rows share, and whose lanes are apart, if there is one such operand.

    Its last vector may reach beyond the last lane, so all of that must be in the workspace.
    """
    panels = [
        (Panel(number, slot), operand, segment.counts)
        for number, segment in enumerate(loop.segments)
        for slot, operand in enumerate(segment.operands)
        if isinstance(operand, Access) and operand.lanes[-1:] not in ((), (0,), (1,))
    ]
    if len(panels) != 1:
        return None
    panel, operand, counts = panels[0]
    if len(counts) != 1 or any(operand.lanes[:-1]) or step.is_own(operand.base):
        return None
    first, stop = operand.extent((*loop.counts[:-1], loop.room), counts)
    return panel if first >= 0 and stop <= step.workspace else None
