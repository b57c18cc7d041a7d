"""Names beside marks, kept clear of one another. Positions are found in pixels, so limits must be set before."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from reports.charts.style import MUTED, TEXT

POINTS = 8.5
Label = tuple[float, float, str]
"""x and y of a mark, and its text."""

_OFFSETS = (0, 10, -10, 20, -20, 30, -30, 42, -42, 54, -54, 66, -66, 78, -78, 90, -90)
_SIDES = ((8, -8), (36, -36), (72, -72))
"""How far to the right and the left: farther off only where everything near is taken."""


def label_column(axes: Axes, labels: Sequence[Label], x: float, *, muted: Collection[str] = ()) -> None:
    """Write labels under one another at x, in the order of their marks, each as near its mark's height as it gets.

    muted: texts that step back.
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
    """Falling heights at least `gap` apart, as near as they get to the wished ones, which must fall too.

    A heap of labels spreads to both sides of its middle: least squares by pooling adjacent violators (Barlow and
    others, 1972), after what the gaps take is added back. Kept from low to high where that is room enough, else they
    leave it at the bottom.
    """
    # Heaps of labels a gap apart, as the mean height of their first labels and their count.
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
    axes: Axes, labels: Sequence[Label], marks: Sequence[tuple[float, float]], *, right_of: float | None = None
) -> None:
    """Write a label beside each mark, moved until it covers no other label and no mark, with a line back if moved.

    marks: every point to keep clear; right_of: the x that no label may reach back over.
    """
    half = 4 * settle(axes)
    taken = [
        Bbox.from_extents(x - half, y - half, x + half, y + half)
        for x, y in (axes.transData.transform(mark) for mark in marks)
    ]
    frame = axes.get_window_extent()
    if right_of is not None:
        frame = Bbox.from_extents(axes.transData.transform((right_of, 1.0))[0], frame.y0, frame.x1, frame.y1)
    places = [(side, rise) for sides in _SIDES for rise in _OFFSETS for side in sides]
    for label in sorted(labels, key=lambda label: -label[1]):
        boxes = {place: _box(axes, label, place) for place in places}
        free = (
            place
            for place, box in boxes.items()
            if _inside(box, frame) and not any(box.overlaps(other) for other in taken)
        )
        place = next(free, places[0])
        taken.append(boxes[place])
        _write(axes, label, *place, lead=place[1] != 0 or abs(place[0]) > _SIDES[0][0])


def _box(axes: Axes, label: Label, place: tuple[int, int]) -> Bbox:
    """Where a label would stand; its width is estimated, since the reader's font decides it."""
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
    """Have the layout done, on which positions depend; returns pixels a point."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    return _pixels_per_point(axes)


def _pixels_per_point(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure.dpi / 72
