"""Marks, lines and labels -> an SVG chart. All charts are drawn here, without a library.

Colours are classes of `templates/chart.css`, so that a chart suits light and dark pages. Text is text, coordinates have
one decimal, and the same data gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import pairwise

from markupsafe import Markup, escape

from zoomgrad.results import units

WIDTH = 460.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 24.0, 44.0
"""Margins around the frame."""
LETTER, LINE = 6.9, 13.0
"""Width of an average letter and height of a line of a label."""
MOST_TICKS = 7
Point = tuple[float, float]
Tick = tuple[float, str]

_UNITS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))
TIMES = (
    *((unit * count, f"{count}\u00a0{name}") for unit, name in _UNITS for count in (1, 10, 100)[: 2 + (unit < 1)]),
    *((60.0 * count, f"{count}\u00a0min") for count in (1, 10)),
    *((3600.0 * count, f"{count:,}\u00a0h") for count in (1, 10, 100, 1000)),
)
"""Ticks of a logarithmic axis of seconds."""


@dataclass(frozen=True)
class Drawing:
    """A drawn chart. `title` is its finding in words, for those who can't see it."""

    name: str
    title: str
    caption: str
    svg: Markup


@dataclass(frozen=True)
class Scale:
    """Values -> places along an axis. `begin` and `end` are the places of `low` and `high`."""

    low: float
    high: float
    ticks: Sequence[Tick]
    label: str
    log: bool = True
    begin: float = 0.0
    end: float = 1.0

    def at(self, value: float) -> float:
        """Return the place of a value."""
        low, high, value = map(math.log, (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        return self.begin + (self.end - self.begin) * (value - low) / ((high - low) or 1.0)


def times(low: float, high: float, label: str) -> Scale:
    """Return a logarithmic scale of seconds from low to high."""
    inside = [tick for tick in TIMES if low <= tick[0] <= high]
    if len(inside) < 2:
        return counts(low, high, label, lambda seconds: units.duration(seconds).replace(" ", "\u00a0"))
    return Scale(low, high, _thinned(inside), label)


def counts(low: float, high: float, label: str, text: Callable[[float], str] = "{:,.4g}".format) -> Scale:
    """Return a logarithmic scale of numbers, with ticks at powers of ten; at finer steps if those are few."""
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    inside = [power for power in powers if low <= power <= high]
    if len(inside) < 3:
        inside = [power * part for power in powers for part in (1, 2, 5) if low <= power * part <= high]
    if len(inside) < 2:
        inside = [float(f"{low * (high / low) ** (part / 4):.2g}") for part in (1, 2, 3)]
    return Scale(low, high, _thinned([(value, text(value)) for value in inside]), label)


def _thinned(ticks: Sequence[Tick]) -> Sequence[Tick]:
    return ticks[:: max(1, -(-len(ticks) // MOST_TICKS))]


@dataclass
class Plot:
    """A chart in the making. Everything is drawn in the order of the calls, labels last."""

    horizontal: Scale
    vertical: Scale
    height: float = 400.0
    width: float = WIDTH
    left: float = LEFT
    right: float = RIGHT
    _parts: list[str] = field(default_factory=list)
    _marks: list[Point] = field(default_factory=list)
    _lines: list[Point] = field(default_factory=list)
    """Places along the drawn lines, which labels avoid if they can."""
    _labels: list[tuple[Point, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        x, y = self.horizontal, self.vertical
        self.x = Scale(x.low, x.high, x.ticks, x.label, x.log, self.left, self.width - self.right)
        self.y = Scale(y.low, y.high, y.ticks, y.label, y.log, self.height - BOTTOM, TOP)
        for value, text in self.x.ticks:
            self._grid((self.x.at(value), self.y.begin), (self.x.at(value), self.y.end))
            self.text((self.x.at(value), self.y.begin + 16), text, "middle")
        for value, text in self.y.ticks:
            self._grid((self.x.begin, self.y.at(value)), (self.x.end, self.y.at(value)))
            self.text((self.x.begin - 6, self.y.at(value) + 4), text, "end")
        self.text(((self.x.begin + self.x.end) / 2, self.height - 6), self.x.label, "middle", "axis")
        self.text((0, 12), self.y.label, "start", "axis")

    def place(self, x: float, y: float) -> Point:
        """Return the place of two values."""
        return self.x.at(x), self.y.at(y)

    def text(self, at: Point, text: str, anchor: str, kind: str = "") -> None:
        """Write a text at a place. anchor: start, middle or end."""
        place = f'x="{_n(at[0])}" y="{_n(at[1])}" text-anchor="{anchor}"'
        self._parts.append(f'<text {place} class="{kind}">{escape(text)}</text>')

    def line(self, places: Sequence[Point], kind: str) -> None:
        """Draw a line through places."""
        path = "L".join(f"{_n(x)} {_n(y)}" for x, y in places)
        self._parts.append(f'<path d="M{path}" class="{kind}"/>')
        if kind not in ("grid", "spread"):
            for (x, y), (right, down) in pairwise(places):
                steps = int(math.hypot(right - x, down - y) / LINE) + 1
                self._lines += [(x + (right - x) * n / steps, y + (down - y) * n / steps) for n in range(steps + 1)]

    def mark(self, at: Point, kind: str, tip: str = "", name: str = "", *, radius: float = 4.0) -> None:
        """Draw a mark, with a tooltip, and name it if there is room. The first names have the first choice."""
        title = f"<title>{escape(tip)}</title>" if tip else ""
        place = f'cx="{_n(at[0])}" cy="{_n(at[1])}" r="{_n(radius)}"'
        self._parts.append(f'<circle {place} class="{kind}">{title}</circle>')
        self._marks.append(at)
        if name:
            self._labels.append((at, name, kind))

    def series(self, points: Sequence[Point], kind: str, tips: Sequence[str], name: str) -> None:
        """Draw a line with a mark at each place, and name the last one."""
        self.line(points, kind)
        for at, tip in zip(points, tips, strict=True):
            self.mark(at, kind, tip, name if at is points[-1] else "", radius=3)

    def drawn(self, name: str, title: str, caption: str = "") -> Drawing:
        """Write the labels and return the chart. name: its file."""
        self._write_labels()
        size = f"{_n(self.width)} {_n(self.height)}"
        head = f'<svg viewBox="0 0 {size}" class="chart" role="img" aria-label="{escape(title)}">'
        return Drawing(name, title, caption, Markup("\n".join((head, *self._parts, "</svg>"))))  # noqa: S704  # escaped

    def _grid(self, begin: Point, end: Point) -> None:
        self.line((begin, end), "grid")

    def _write_labels(self) -> None:
        """Write each label at the first place beside its mark that covers nothing, or only lines; else leave it out."""
        taken: list[Box] = []
        marks = [_around(mark, 3) for mark in self._marks]
        lines = [_around(place, 1) for place in self._lines]
        for (x, y), text, kind in self._labels:
            boxes = [(_box(x, y, text, place), place) for place in _BESIDE]
            free = [(box, place) for box, place in boxes if self._holds(box) and not _meets(box, (*marks, *taken))]
            for box, (right, up, anchor) in sorted(free, key=lambda one: _meets(one[0], lines))[:1]:
                taken.append(box)
                self.text((x + right, y - up + 4), text, anchor, f"name {kind}")

    def _holds(self, box: Box) -> bool:
        return box[0] >= self.x.begin and box[2] <= self.width and box[1] >= TOP - LINE and box[3] <= self.y.begin


Place = tuple[float, float, str]
Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""
_BESIDE: tuple[Place, ...] = (
    *((8.0, 0.0, "start"), (-8.0, 0.0, "end"), (6.0, 11.0, "start"), (6.0, -11.0, "start")),
    *((-6.0, 11.0, "end"), (-6.0, -11.0, "end")),
    *((0.0, 14.0, "middle"), (0.0, -14.0, "middle")),
    *((6.0, 24.0, "start"), (6.0, -24.0, "start"), (-6.0, 24.0, "end"), (-6.0, -24.0, "end")),
)
"""Places for a label: to the right of its mark, above it, and its anchor."""


def standalone(drawing: Drawing) -> str:
    """Return a chart as a file of its own, with its colours."""
    style = (resources.files("zoomgrad.reports") / "templates" / "chart.css").read_text(encoding="utf-8")
    style += "svg { background: var(--bg); }\n</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" width="{_n(WIDTH * 1.6)}" '
    body = str(drawing.svg).replace("<svg ", head, 1).replace(">", f">\n<style>\n{style}", 1)
    return f"{body}\n"


def _around(at: Point, distance: float) -> Box:
    return at[0] - distance, at[1] - distance, at[0] + distance, at[1] + distance


def _box(x: float, y: float, text: str, place: Place) -> Box:
    right, up, anchor = place
    width = LETTER * len(text)
    left = x + right - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return left, y - up - LINE / 2, left + width, y - up + LINE / 2


def _meets(box: Box, others: Iterable[Box]) -> bool:
    return any(box[0] < one[2] and one[0] < box[2] and box[1] < one[3] and one[1] < box[3] for one in others)


def _n(number: float) -> str:
    return f"{round(number, 1) + 0.0:g}"
