"""Labels beside marks, placed so that they don't overlap. Positions are in pixels, so set the axes' limits first.

Libraries do less: in a crowd adjustText leaves labels on top of each other. textalloc does not, but it has no columns
and can't keep to a boundary within the axes, and it prints to standard output if it finds no free place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from reports.charts.drawing.style import MUTED, TEXT

POINTS = 8.5
Label = tuple[float, float, str]
"""x and y of a mark, and its text."""

Boxes = NDArray[np.float64]

_OFFSETS = (0, 10, -10, 20, -20, 30, -30, 42, -42, 54, -54, 66, -66, 78, -78, 90, -90)
_SIDES = ((8, -8), (36, -36), (72, -72))
"""Distances to the right and the left, in points. Farther ones are used only if everything nearer is taken."""


def label_column(axes: Axes, labels: Sequence[Label], x: float, *, muted: Collection[str] = ()) -> None:
    """Write labels as a column at x, in the order of their marks, each as near to its mark's height as possible.

    muted: texts to write in grey.
    """
    scale = settle(axes)
    gap = POINTS * 1.3
    frame = axes.get_window_extent()
    ordered = sorted(labels, key=lambda label: -label[1])
    wished = [float(axes.transData.transform((x, y))[1]) / scale for _, y, _ in ordered]
    heights = spread(wished, gap, low=frame.y0 / scale + gap / 2, high=frame.y1 / scale - gap / 2)
    for label, height in zip(ordered, heights, strict=True):
        mark_x, mark_y = axes.transData.transform(label[:2]) / scale
        column_x = axes.transData.transform((x, label[1]))[0] / scale
        colour = MUTED if label[2] in muted else TEXT
        _write(axes, label, column_x - mark_x, height - mark_y, lead=True, colour=colour)


def spread(wished: Sequence[float], gap: float, *, low: float, high: float) -> list[float]:
    """Return falling heights at least `gap` apart, as near as possible to the wished ones, which must fall too.

    Labels that would overlap form a heap, which spreads to both sides of its middle. The heights are the least-squares
    solution, by pooling adjacent violators (Barlow and others, 1972) after adding back the gaps. They stay between low
    and high if there is room, and otherwise overflow at the bottom.
    """
    # Each heap: the mean height of its labels, gaps added back, and their count.
    heaps: list[tuple[float, int]] = []
    for index, height in enumerate(wished):
        heap, count = height + index * gap, 1
        while heaps and heaps[-1][0] < heap:
            above, number = heaps.pop()
            heap, count = (above * number + heap * count) / (number + count), number + count
        heaps.append((heap, count))
    raised = [heap for heap, count in heaps for _ in range(count)]
    floor = low + (len(raised) - 1) * gap
    return [min(max(height, floor), high) - index * gap for index, height in enumerate(raised)]


def label_marks(
    axes: Axes,
    labels: Sequence[Label],
    marks: Sequence[tuple[float, float]],
    *,
    lines: Sequence[tuple[float, float]] = (),
    right_of: float | None = None,
    left_of: float | None = None,
) -> None:
    """Write a label beside each mark, where it covers no other label and no mark, with a line to the mark if moved.

    marks: points that no label may cover. lines: points that labels avoid if there is room. right_of, left_of: the x
    that no label may cross.
    """
    settle(axes)
    taken, crossed = (_around(axes, points) for points in (marks, lines))
    frame = axes.get_window_extent()
    left, right = (end if x is None else _pixel(axes, x) for x, end in ((right_of, frame.x0), (left_of, frame.x1)))
    frame = Bbox.from_extents(left, frame.y0, right, frame.y1)
    places = [(side, rise) for sides in _SIDES for rise in _OFFSETS for side in sides]
    for label in sorted(labels, key=lambda label: -label[1]):
        boxes = {place: _box(axes, label, place) for place in places}
        clear = [place for place, box in boxes.items() if _inside(box, frame) and not _meets(box, taken)]
        free = (place for place in clear if not _meets(boxes[place], crossed))
        place = next(free, clear[0] if clear else places[0])
        taken = np.vstack([taken, boxes[place].extents])
        _write(axes, label, *place, lead=place[1] != 0 or abs(place[0]) > _SIDES[0][0])


def _around(axes: Axes, points: Sequence[tuple[float, float]]) -> Boxes:
    """Return boxes around marks: left, bottom, right and top of each, in pixels."""
    half = 4 * _pixels_per_point(axes)
    middles: Boxes = axes.transData.transform(np.asarray(points, dtype=float).reshape(-1, 2))
    return np.hstack([middles - half, middles + half])


def _meets(box: Bbox, boxes: Boxes) -> bool:
    apart = (boxes[:, 0] > box.x1) | (boxes[:, 2] < box.x0) | (boxes[:, 1] > box.y1) | (boxes[:, 3] < box.y0)
    return not bool(apart.all())


def _pixel(axes: Axes, x: float) -> float:
    return float(axes.transData.transform((x, 1.0))[0])


def write_along(axes: Axes, label: Label, rise: float) -> list[tuple[float, float]]:
    """Write a label above or below a horizontal line that starts at its mark; return points that others must avoid.

    Call `settle` first.
    """
    x, y, text = label
    box = _box(axes, label, (_SIDES[0][0], round(rise + math.copysign(POINTS / 2, rise))))
    axes.annotate(
        text,
        (x, y),
        xytext=(_SIDES[0][0], rise),
        textcoords="offset points",
        ha="left",
        va="bottom" if rise > 0 else "top",
        fontsize=POINTS,
        color=TEXT,
    ).set_in_layout(False)
    middle = (box.y0 + box.y1) / 2
    inside = [box.x0 + (box.x1 - box.x0) * part / len(text) for part in range(len(text) + 1)]
    found = axes.transData.inverted().transform([(at, middle) for at in inside])
    return [(float(at_x), float(at_y)) for at_x, at_y in found]


def _box(axes: Axes, label: Label, place: tuple[int, int]) -> Bbox:
    """Return the box of a label at a place. Its width is an estimate, because it depends on the reader's font."""
    scale = _pixels_per_point(axes)
    x, y, text = label
    side, rise = place
    mark_x, mark_y = axes.transData.transform((x, y))
    width, height = len(text) * POINTS * 0.62 * scale, POINTS * 1.15 * scale
    left = mark_x + side * scale - (width if side < 0 else 0.0)
    return Bbox.from_bounds(left, mark_y + rise * scale - height / 2, width, height)


def _inside(box: Bbox, frame: Bbox) -> bool:
    return bool(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)


def _write(axes: Axes, label: Label, side: float, rise: float, *, lead: bool, colour: str = TEXT) -> None:
    x, y, text = label
    line = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
    axes.annotate(
        text,
        (x, y),
        xytext=(side, rise),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="center",
        fontsize=POINTS,
        color=colour,
        arrowprops={**line, "relpos": (0.0 if side > 0 else 1.0, 0.5)} if lead else None,
    ).set_in_layout(False)


def settle(axes: Axes) -> float:
    """Run the figure's layout, on which positions depend; return pixels per point."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    return _pixels_per_point(axes)


def _pixels_per_point(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure.dpi / 72
