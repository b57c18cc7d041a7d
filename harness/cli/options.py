"""What a user writes for a time or a share -> a number. Typer makes a BadParameter wrong use."""

from __future__ import annotations

import re

import typer

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h)?")


def duration(text: str) -> float:
    """`90`, `90s`, `10m`, `1h30m` in seconds."""
    squeezed = text.replace(" ", "")
    parts = _PART.findall(squeezed)
    if not parts or _PART.sub("", squeezed):
        raise typer.BadParameter(f"{text!r} is no time; write 90s, 10m or 1h30m")
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not seconds:
        raise typer.BadParameter("nothing fits into no time")
    return seconds


def share(text: str) -> float:
    """`5%` or `0.05` as a share of 1."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise typer.BadParameter(f"{text!r} is no share; write 5% or 0.05")
    return value
