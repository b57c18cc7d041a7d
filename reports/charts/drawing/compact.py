"""Matplotlib's SVG -> the same picture in a third of the bytes, because charts are committed.

Matplotlib names every group, writes coordinates to a millionth of a point, and repeats the style on every mark. This
module turns styles into classes, rounds coordinates to hundredths of a point, leaves out points on a straight line,
makes paths relative (`M0 0L5 0L10 0L10 5` becomes `M0 0h10v5`), and removes groups without attributes.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from reports.charts.drawing.style import TIP

_COORDINATES = ("x", "y", "width", "height", "transform")
_NUMBER = re.compile(r"-?\d+\.\d+")
_NO_TURN = re.compile(r"rotate\(-?0[ )].*")
_POINTER = re.compile(r"(?<=#)[\w.:-]+")


_STRAIGHT = 2
"""Hundredths of a point by which a line may miss the points that are left out."""
_MOST_LEFT_OUT = 100
"""Between two points of a line."""

_Point = tuple[int, int]


def compact(svg: str, name: str) -> str:
    """Return the compact drawing, with a style sheet that applies to it alone.

    svg: must have no namespaces, and the title as its first element.
    """
    root = ET.fromstring(svg)  # noqa: S314  (Matplotlib wrote it)
    root.set("id", f"{name}-chart")  # the page's <figure> already has the bare name as its id
    ids = _ids(root, name)
    classes: dict[str, str] = {}
    for element in root.iter():
        element.tail = None
        if element.tag not in ("text", "title"):
            element.text = None
        if element is not root and element.tag != "title":
            _shorten(element.attrib, ids, classes)
    _drop_groups(root)
    _tips(root)
    sheet = ET.Element("style")
    sheet.text = "".join(f"#{name}-chart .{class_}{{{style}}}" for style, class_ in classes.items())
    root.insert(1, sheet)
    # One element per line keeps diffs readable.
    return ET.tostring(root, encoding="unicode").replace(" />", "/>").replace("><", ">\n<")


def _ids(root: ET.Element, name: str) -> dict[str, str]:
    """Map each id that something refers to, to a short one."""
    pointed_at = {
        id_ for element in root.iter() for value in element.attrib.values() for id_ in _POINTER.findall(value)
    }
    there = [element.attrib["id"] for element in root.iter() if element.get("id") in pointed_at]
    return {id_: f"{name}-i{number}" for number, id_ in enumerate(there)}


def _shorten(given: dict[str, str], ids: dict[str, str], classes: dict[str, str]) -> None:
    """Shorten an element's attributes in place and add its style to `classes`."""
    id_ = given.pop("id", "")
    if id_.startswith(TIP):
        given["data-cell"], given["data-tip"] = id_.removeprefix(TIP).split("|", 1)
    if id_ in ids:
        given["id"] = ids[id_]
    for key in given:
        given[key] = _POINTER.sub(lambda found: ids.get(found[0], found[0]), given[key])
    # A clipping path repeats as often as a style, and CSS allows it as part of one.
    clip = given.pop("clip-path", "")
    style = "; ".join(filter(None, (given.pop("style", ""), clip and f"clip-path: {clip}")))
    if style:
        given["class"] = classes.setdefault(style, f"s{len(classes)}")
    for key in given.keys() & set(_COORDINATES):
        given[key] = _NUMBER.sub(lambda found: _decimal(round(100 * float(found[0]))), given[key])
    if "d" in given:
        given["d"] = _path(given["d"])
    if _NO_TURN.fullmatch(given.get("transform", "")):
        del given["transform"]


def _path(absolute: str) -> str:
    """Return Matplotlib's path with rounded coordinates, lines and curves relative to the previous point."""
    x = y = first_x = first_y = 0
    written = before = ""
    for command, points in _straightened(absolute):
        if command == "M":
            ((x, y),) = ((first_x, first_y),) = points
            written += f"M{_decimal(x)} {_decimal(y)}"
        elif command == "z":
            x, y = first_x, first_y
            written += "z"
        else:
            moved = [(to_x - x, to_y - y) for to_x, to_y in points]
            x, y = points[-1]
            command, steps = _step(command, moved)
            # SVG allows omitting a repeated command, and a minus sign separates numbers as a space does.
            written += command if command != before else "" if steps[0] < 0 else " "
            written += " ".join(map(_decimal, steps)).replace(" -", "-")
        before = command
    return written


def _straightened(absolute: str) -> list[tuple[str, list[_Point]]]:
    """Return a path's commands and points without the points that are, to the eye, on a straight line."""
    kept: list[tuple[str, list[_Point]]] = []
    left_out: list[_Point] = []
    for command, numbers in re.findall(r"([A-Zz])([^A-Zz]*)", absolute):
        given = [round(100 * float(number)) for number in numbers.split()]
        points = list(zip(given[::2], given[1::2], strict=True))
        if command == "L" and len(kept) > 1 and kept[-1][0] == "L" and len(left_out) < _MOST_LEFT_OUT:
            begin, last = kept[-2][1][-1:], kept[-1][1][0]
            if begin and all(_is_between(one, begin[0], points[0]) for one in (*left_out, last)):
                left_out.append(last)
                kept[-1] = (command, points)
                continue
        left_out = []
        kept.append((command, points))
    return kept


def _is_between(point: _Point, begin: _Point, end: _Point) -> bool:
    """Whether the point is on the line from begin to end."""
    right, down = end[0] - begin[0], end[1] - begin[1]
    x, y = point[0] - begin[0], point[1] - begin[1]
    along, squared = x * right + y * down, right * right + down * down
    return 0 <= along <= squared and (x * down - y * right) ** 2 <= _STRAIGHT**2 * squared


def _step(command: str, moved: list[_Point]) -> tuple[str, list[int]]:
    """Return a line or a curve as a relative command and its numbers."""
    if command == "L":
        ((right, down),) = moved
        if not down:
            return "h", [right]
        if not right:
            return "v", [down]
    return command.lower(), [number for point in moved for number in point]


def _decimal(hundredths: int) -> str:
    """Format hundredths as a decimal: -50 as `-.5`."""
    whole, rest = divmod(abs(hundredths), 100)
    text = f"{whole or ''}.{rest:02}".rstrip("0").rstrip(".") or "0"
    return f"-{text}" if hundredths < 0 else text


def _tips(root: ET.Element) -> None:
    """Write each tooltip as a title, which a browser shows without any script."""
    for element in list(root.iter()):
        if text := element.attrib.pop("data-tip", ""):
            title = ET.Element("title")
            title.text = text
            element.insert(0, title)


def _drop_groups(parent: ET.Element) -> None:
    """Replace every group without attributes by its children, and remove empty `defs`."""
    kept: list[ET.Element] = []
    for child in parent:
        _drop_groups(child)
        if child.tag in ("g", "defs") and not child.attrib and (child.tag == "g" or not len(child)):
            kept += child
        else:
            kept.append(child)
    parent[:] = kept
