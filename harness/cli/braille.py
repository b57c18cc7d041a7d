"""A curve -> lines of text for a terminal, drawn in braille: a character holds two dots across and four down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from results.stats.curves import Curve, height_at, is_level, logarithmic

# The bit of each dot in U+2800 to U+28FF, from the top: left column, right column.
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def plot(
    title: str,
    curve: Curve,
    *,
    columns: int,
    rows: int,
    text: Callable[[float], str],
    limits: tuple[float, float] | None = None,
    unit: str = "",
) -> list[str]:
    """The curve from x = 0 on, below its title and above its axis: `rows + 3` lines of at most `columns` characters.

    No lines where that is too narrow.
    text: a value of the vertical axis as people read it. limits: lowest and highest value; by default the curve's.
    """
    values = [y for _, y in curve]
    low, high = limits or (min(values), max(values))
    by_logarithm = limits is None and logarithmic(values)
    scale = math.log if by_logarithm else float
    bottom, top = scale(low), scale(high)
    level = is_level(low, high)
    labels = [*[""] * (rows // 2), text(high)] if level else [text(high), *[""] * (rows - 2), text(low)]
    labels += [""] * (rows - len(labels))
    margin = max(map(len, labels))
    across = columns - margin - 2
    if across < 8:
        return []
    first, last = curve[0][0], curve[-1][0]
    dots = 2 * across
    heights = {}
    for dot in range(math.floor(first / last * (dots - 1)), dots):
        y = scale(height_at(curve, last * dot / (dots - 1)))
        share = 0.5 if level else (y - bottom) / (top - bottom)
        heights[dot] = round((1 - share) * (4 * rows - 1))
    lines = [f"{label:>{margin}} ┤{line}" for label, line in zip(labels, _drawn(heights, across, rows), strict=True)]
    end = f"{last:,.4g}{unit}"
    return [
        f"{title}{', logarithmic' * by_logarithm}"[:columns],
        *(line.rstrip("⠀") for line in lines),
        f"{'':{margin}} └{'─' * across}",
        f"{'':{margin}}  0{end:>{across - 1}}"[:columns],
    ]


def beside(left: Sequence[str], right: Sequence[str], columns: int) -> list[str]:
    """Two plots of the same height side by side; the left one takes that many columns."""
    return [f"{a:{columns}}{b}".rstrip() for a, b in zip(left, right, strict=True)]


def _drawn(heights: Mapping[int, int], across: int, rows: int) -> list[str]:
    """One dot in each of these columns, so far from the top, and dots between it and its left neighbour."""
    cells = [[0x2800] * across for _ in range(rows)]

    def dot(x: int, y: int) -> None:
        cells[y // 4][x // 2] |= _BITS[y % 4][x % 2]

    for x, y in heights.items():
        before = heights.get(x - 1, y)
        nearest = before + (y > before) - (y < before)  # a steep part has no gaps, and a flat one no steps
        for between in range(min(y, nearest), max(y, nearest) + 1):
            dot(x, between)
    return ["".join(map(chr, row)) for row in cells]
