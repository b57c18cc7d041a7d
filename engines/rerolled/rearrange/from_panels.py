"""From panels: a sink for many rows copies the numbers that its tiles share, and the tiles read the copy.

All tiles of a strip read the same lanes of each row's gradients. These rows are pages of memory apart, and a processor
prefetches within a page only. So the loop first copies the lanes side by side, to a *panel* in a near cache. The order
of terms stays, so no bit changes. Other loops have a panel only if vectors need an operand whose lanes are apart.

A sink's tiles also read its inputs, one row after another. They are first copied in the order in which tiles read them,
if the inputs of all rows exceed half of the second-level cache, or if they exceed NEAR and many strips read them.

Example: loop 12 of `mlp-784x512x10-b100` has 784 inputs: 130 tiles of 6, which become the lines below, and one of 4.

    loop 12 copied in tiles of 6 for up to 108 rows: for i<130 j<108 l<6: tiles[648*i + 6*j + l] = own[6*i + 2984*j + l]
    loop 12 in tiles of 6 for up to 108 rows from a panel: for i<130 j<6 l<512:
        q[520 + 3120*i + 520*j + l] += sum(t<108: tiles[648*i + j + 6*t] * own[1880 + l + 2984*t])

Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, which calls it packing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Optional

from zoomgrad.engines.rerolled.form import TALLEST, Form, has_strides
from zoomgrad.engines.rerolled.rearrange.weight_reuse import PRODUCT
from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Phase, Segment
from zoomgrad.engines.rerolled.recover.templates import SLOTS
from zoomgrad.engines.rerolled.step.language import Panel, Run
from zoomgrad.engines.rerolled.step.step import Step

NEAR, MANY_STRIPS = 48 << 10, 4
"""Inputs are copied if they exceed these bytes, a large first-level cache, and more strips than these read them."""


def read_from_panels(step: Step, form: Form) -> Step:
    """Give loops over rows their panels, and sinks copies of their inputs."""
    panels = {run: panel for runs in step.routines.values() for run in runs if (panel := _panel(step, run))}
    if not panels:
        return step
    terms = max(run.loop.segments[panel.segment].counts[0] for run, panel in panels.items())
    size = step.whole_vectors(terms * form.strip)
    step, area = step.with_area("panel", form.threads * size)
    placed = {run: replace(run, panel=Panel(*panel[:2], area.start, size)) for run, panel in panels.items()}
    plain = [] if step.is_divided else [run for run in panels if run.sums_rows and not run.is_live]
    talls = {placed[run]: tall for run in plain if (tall := _tall(run, panels[run], form))}
    if talls:
        step, area = step.with_area("tiles", max(run.rows * run.loop.counts[0] for run in talls))
    for name, runs in step.routines.items():
        new = [placed.get(run, run) for run in runs]
        step = step.with_routine(name, chain(*(_in_tiles(run, area.start, talls.get(run, 0)) for run in new)))
    return step


def _in_tiles(run: Run, base: int, tall: int) -> Iterator[Run]:
    """Copy a sink's inputs in tiles, and read the copies. The inputs left over form one lower tile.

    base: of the copies. tall: the inputs of a tile; 0 if the run has no copies.
    """
    if not tall:
        yield run
        return
    whole, left = divmod(run.loop.counts[0], tall)
    for first, tiles, of_tile in ((0, whole, tall), (whole * tall, 1, left)):
        if of_tile:
            yield from _with_copies(run, first, tiles, of_tile, base + first * run.rows)


def _with_copies(run: Run, first: int, tiles: int, tall: int, base: int) -> tuple[Run, Run]:
    """A loop that copies the inputs of tiles, and the sink over these copies. first: the first input."""
    assert run.panel
    loop, rows, slot = run.loop, run.rows, run.panel.slot
    (segment,), target = loop.segments, loop.target
    strided: Any = segment.operands[1 - slot], segment.operands[slot], target.lanes[0]
    x, factor, away = strided
    copied = Segment(SLOTS[0], (), (Access(x.base + first, (tall, *x.terms, 1)),))
    copies = Loop(Phase.FORWARD, (tiles, rows, tall), Access(base, (tall * rows, tall, 1)), tall, (copied,))
    x, factor = Access(base, (tall * rows, 1, 0), (tall,)), factor._replace(lanes=(0, *factor.lanes))
    tiled = replace(
        loop,
        counts=(tiles, tall, loop.counts[1]),
        target=target._replace(base=target.base + first * away, lanes=(tall * away, *target.lanes)),
        segments=(segment._replace(operands=(x, factor) if slot else (factor, x)),),
    )
    return Run(run.number, copies, rows=rows, tall=tall), replace(run, loop=tiled, tall=tall)


def _tall(run: Run, panel: Panel, form: Form) -> int:
    """How many inputs a tile has; 0 if the inputs are not copied."""
    segment, (inputs, lanes) = run.loop.segments[0], run.loop.counts
    x = segment.operands[1 - panel.slot]
    is_product = segment.template == PRODUCT and isinstance(x, Access) and x.lanes == (1, 0) and has_strides(run.loop)
    if not is_product or lanes < form.width or inputs < TALLEST:
        return 0
    tall, wide = form.tile(lanes // form.width)
    numbers, strips = run.rows * inputs, lanes // (wide * form.width)
    return tall if form.is_beyond_cache(2 * numbers) or (8 * numbers > NEAR and strips > MANY_STRIPS) else 0


def _panel(step: Step, run: Run) -> Optional[Panel]:
    """A panel, without its place, for an operand that all tiles share."""
    if run.rows == 1 or (run.is_live and not run.sums_rows):
        return None
    factors = (Panel(*read[:2]) for read in run.loop.reads() if run.sums_rows and read[2].lanes == (0, 1))
    return next(factors, None) or turned(step, run.loop)


def turned(step: Step, loop: Loop) -> Optional[Panel]:
    """A panel for an operand that all rows share, and whose lanes are apart, if there is one such operand.

    Its last vector may reach beyond the last lane, so all of that must be in the workspace.
    """
    apart = [read for read in loop.reads() if read[2].lanes[-1:] not in ((), (0,), (1,))]
    if len(apart) != 1:
        return None
    number, slot, operand = apart[0]
    counts = loop.segments[number].counts
    if len(counts) != 1 or any(operand.lanes[:-1]) or step.is_own(operand.base):
        return None
    first, stop = operand.extent((*loop.counts[:-1], loop.room), counts)
    return Panel(number, slot) if first >= 0 and stop <= step.workspace else None
