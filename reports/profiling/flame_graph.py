"""Folded stacks -> a flame graph as an SVG file, with the root on top. Method: Brendan Gregg, "The Flame Graph", 2016.

The file has no script: a frame shows its name if there is room, and its share in a tooltip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from zlib import crc32

from markupsafe import Markup, escape

WIDTH = 1200.0
ROW = 17.0
NARROWEST = 0.01
"""Fraction of all samples below which a frame has no room for letters and is not drawn; its callers keep them."""
LETTER = 6.3
"""Width of a letter in the drawing's units, for the font below."""

_KINDS = (
    ("garbage collector", "#d55e00", re.compile(r"gc_|_gc(_|$)|_traverse\b|^visit_|_(unreachable|refs)$", re.I)),
    ("Python", "#56b4e9", re.compile(r"\.py\b|^py::|^<")),
    ("native", "#e69f00", re.compile("")),
)
"""Name, colour and pattern of each kind of frame; the first pattern found in a frame's name decides."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Frame:
    """A function on a stack. `total` counts the samples in it and in everything it called."""

    name: str
    total: float = 0.0
    called: dict[str, Frame] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """A frame to draw. `left` and `share` (its width) are fractions of all samples."""

    name: str
    depth: int
    left: float
    share: float


DEEPEST = 10_000
"""Most frames drawn per stack: ten times Python's recursion limit."""


def flame(stacks: Mapping[str, float], title: str) -> str:
    """Draw the flame graph of samples by stack (`outer;inner`) as a complete SVG file."""
    boxes = list(_boxes(_merged(stacks)))
    depth = max((box.depth for box in boxes), default=0) + 1
    top = 3.2 * ROW
    height = top + depth * ROW + 8
    heading = _text(title)
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
            f'aria-label="{heading}" font-family="ui-monospace, monospace" font-size="10.5">\n',
            f"<title>{heading}</title>\n",
            "<style>svg{background:#fff;color:#1b1f24}@media(prefers-color-scheme:dark){svg{background:#14171a;color:#e6e8eb}}"
            "rect{stroke:#14171a;stroke-width:.4}g:hover>rect{stroke-width:1.6}g text{pointer-events:none;fill:#101010}"
            "</style>\n",
            f'<text x="4" y="{ROW}" font-size="14" fill="currentColor">{heading}</text>\n',
            *_legend(),
            *(_drawn(box, top) for box in boxes),
            "" if boxes else f'<text x="4" y="{top + ROW}" fill="currentColor">No samples.</text>\n',
            "</svg>\n",
        )
    )


def _text(name: str) -> Markup:
    """Escape a name and replace the characters that XML cannot hold."""
    return escape(_NO_XML.sub("\ufffd", name))


def _merged(stacks: Mapping[str, float]) -> Frame:
    root = Frame("all")
    for stack, count in stacks.items():
        if not count > 0:
            continue
        frame = root
        frame.total += count
        for name in list(filter(None, stack.split(";")))[:DEEPEST]:
            frame = frame.called.setdefault(name, Frame(name))
            frame.total += count
    return root


def _boxes(root: Frame) -> Iterator[Box]:
    """Lay out the frames: callees side by side below their caller, from left to right in the order of their names."""
    # An explicit stack, because frames may nest deeper than Python's recursion limit.
    waiting = [(root, 0, 0.0)] if root.total > 0 else []
    while waiting:
        frame, depth, left = waiting.pop()
        yield Box(frame.name, depth, left, frame.total / root.total)
        for name in sorted(frame.called):
            callee = frame.called[name]
            if callee.total >= NARROWEST * root.total:
                waiting.append((callee, depth + 1, left))
                left += callee.total / root.total


def _legend() -> Iterator[str]:
    left = 4.0
    for name, colour, _ in _KINDS:
        yield f'<rect x="{left:g}" y="{1.6 * ROW:g}" width="11" height="11" fill="{colour}"/>'
        yield f'<text x="{left + 16:g}" y="{1.6 * ROW + 9.5:g}" fill="currentColor">{name}</text>\n'
        left += 16 + LETTER * len(name) + 24


def _drawn(box: Box, top: float) -> str:
    x, y, width = box.left * WIDTH, top + box.depth * ROW, box.share * WIDTH
    letters = int((width - 6) / LETTER)
    short = box.name if len(box.name) <= letters else f"{box.name[: letters - 1]}…"
    text = f'<text x="{x + 3:.2f}" y="{y + 12:.2f}">{_text(short)}</text>' if letters >= 3 else ""
    return (
        f"<g><title>{_text(box.name)}: {100 * box.share:.1f} %</title>"
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{ROW - 1:g}" fill="{_colour(box)}"/>{text}</g>\n'
    )


def _colour(box: Box) -> str:
    """Return the colour of the frame's kind, in one of five shades by its name to distinguish neighbours."""
    if not box.depth:
        return "#b0b0b0"
    colour = next(colour for _, colour, pattern in _KINDS if pattern.search(box.name))
    paler = 0.1 * (crc32(box.name.encode(errors="replace")) % 5)
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * paler):02x}" for part in parts)
