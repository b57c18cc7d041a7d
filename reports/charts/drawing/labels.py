"""Labels beside marks. The chart names the marks that matter most; tooltips, legends and tables name all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from zoomgrad.reports.charts.drawing.style import TEXT

POINTS = 8.5
Label = tuple[float, float, str]
"""x and y of a mark, and its text."""

BESIDE = ((8, 0), (-8, 0), (8, 9), (8, -9), (-8, 9), (-8, -9))
RIGHT = ((8, 0), (8, 9), (8, -9))
BELOW = ((8, -9),)
"""Distances from a mark to the right and upwards, in points."""


def label_marks(axes: Axes, labels: Sequence[Label], places: Sequence[tuple[int, int]] = BESIDE) -> None:
    """Write each label at the first of these places beside its mark that covers no mark and no other text.

    labels: the most important one first. A label without such a place is left out. Call it last: positions depend on
    the axes' limits, and everything that is drawn already keeps its place.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    frame, taken = axes.get_window_extent(), [text.get_window_extent() for text in axes.texts]
    drawn = [line.get_xydata() for line in axes.lines if line.get_marker() not in ("None", "")]
    marks = axes.transData.transform(np.vstack([np.empty((0, 2)), *drawn]))
    for x, y, text in labels:
        for right, up in places:
            label = axes.annotate(text, (x, y), (right, up), textcoords="offset points", fontsize=POINTS, color=TEXT)
            label.set(ha="left" if right > 0 else "right", va="center", in_layout=False)
            box = label.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not box.count_contains(marks) and not box.count_overlaps(taken):
                taken.append(box)
                break
            label.remove()
