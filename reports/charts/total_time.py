"""Total time against samples trained: which engine to choose for a training of a given length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zoomgrad.reports.break_even import Cost, Winner, about
from zoomgrad.reports.plot import Drawing, Plot, counts, times

EPOCHS = 100
"""Length of the lines, in epochs."""


def total_time(
    name: str, title: str, noun: str, rivals: Sequence[Cost], leads: Sequence[Winner], end: float
) -> Drawing:
    """Draw one line for each engine up to `end` samples; it is thick where its engine has the least total time."""
    lowest = min(cost.total_seconds(1) for cost in rivals)
    highest = max(cost.total_seconds(end) for cost in rivals)
    # To the right of the lines is room for names.
    samples = counts(1, end**1.3, f"{noun}s trained", "{:,.0f}".format)
    plot = Plot(samples, times(lowest / 2, highest * 2, "total time"))
    leading = {winner.cost.engine for winner in leads}
    for cost in rivals:
        plot.line(_line(plot, cost, 1, end), "front" if cost.engine in leading else "thin")
    ends = [*(later.samples for later in leads[1:]), end]
    for winner, until in zip(leads, ends, strict=True):
        plot.line(_line(plot, winner.cost, winner.samples, until), "bold")
    for winner in leads[1:]:
        at = plot.place(winner.samples, winner.cost.total_seconds(winner.samples))
        plot.mark(at, "on", f"{winner.cost.engine} from {about(winner.samples)} {noun}s on", about(winner.samples))
    epoch = end / EPOCHS
    plot.line((plot.place(epoch, plot.y.low), plot.place(epoch, plot.y.high)), "edge")
    plot.text((plot.x.at(epoch) - 4, plot.y.end + 12), "1 epoch", "end")
    for cost in sorted(rivals, key=lambda cost: (cost.engine not in leading, cost.total_seconds(end))):
        kind = "on" if cost.engine in leading else "off"
        plot.mark(plot.place(end, cost.total_seconds(end)), kind, cost.engine, cost.engine, radius=2)
    caption = "Thick: the least total time. Dots: where the next engine takes the lead."
    return plot.drawn(name, title, caption)


def _line(plot: Plot, cost: Cost, start: float, stop: float) -> list[tuple[float, float]]:
    """Return many places, because a straight line bends on logarithmic axes."""
    return [plot.place(count, cost.total_seconds(count)) for count in map(float, np.geomspace(start, stop, 24))]
