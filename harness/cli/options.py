"""Parsers of times, sizes, shares and names, and the options that several commands share.

Typer turns a BadParameter into a usage error.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Optional

import typer

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h)?")


def duration(text: str) -> float:
    """Parse `90`, `90s`, `10m` or `1h30m` into seconds."""
    squeezed = text.replace(" ", "")
    parts = _PART.findall(squeezed)
    if not parts or _PART.sub("", squeezed):
        raise typer.BadParameter(f"{text!r} is not a time; write for example 90s, 10m or 1h30m")
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not seconds:
        raise typer.BadParameter("must be more than 0")
    return seconds


_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)


def size(text: str) -> int:
    """Parse `8G`, `512M`, `1.5 GiB` or `65536` into bytes; units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    found = int(float(match[1]) * _BYTES[match[2].upper()]) if match else 0
    if not match or found >= 1 << 62:
        raise typer.BadParameter(f"{text!r} is not a size; write for example 8G, 512M or 65536 (bytes)")
    if not found:
        raise typer.BadParameter("must be more than 0")
    return found


def share(text: str) -> float:
    """Parse `5%` or `0.05` into a share of 1."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise typer.BadParameter(f"{text!r} is not a share between 0 and 1; write for example 5% or 0.05")
    return value


def some_name(text: Optional[str]) -> Optional[str]:
    """Refuse an empty name, which would otherwise count as an option or argument that was left out."""
    if text is not None and not text.strip():
        raise typer.BadParameter(f"{text!r} is an empty name; give a name, or leave it out")
    return text


def some_names(text: Optional[str]) -> Optional[str]:
    """Refuse an empty name in a list separated by commas."""
    if text is not None and not all(name.strip() for name in text.split(",")):
        raise typer.BadParameter(f"{text!r} has an empty name; write names like `a,b`, or leave the option out")
    return text


def names(text: Optional[str]) -> list[str]:
    """Split an option into its names, without duplicates."""
    return list(dict.fromkeys(name.strip() for name in text.split(","))) if text else []


Engines = Annotated[
    Optional[str], typer.Option("--engines", callback=some_names, help="Only these engines, separated by commas.")
]
Workloads = Annotated[
    Optional[str], typer.Option("--workloads", callback=some_names, help="Only these workloads, separated by commas.")
]
Interpreters = Annotated[
    Optional[str],
    typer.Option(
        "--interpreters",
        callback=some_names,
        help="Only these interpreters, separated by commas: names, or NAME=PATH of any build.",
    ),
]
Timeout = Annotated[Optional[float], typer.Option(min=1, help="Time limit of a worker, in seconds.")]
Memory = Annotated[
    Optional[int], typer.Option(parser=size, metavar="SIZE", help="Memory limit of a worker, for example 8G.")
]
Wait = Annotated[
    bool, typer.Option("--wait", help="If another run is measuring on this machine, wait for it instead of failing.")
]


def limits(timeout: float | None, memory: int | None = None) -> dict[str, Any]:
    """Fields of Settings for the limits that the user gave."""
    asked = {"timeout_seconds": timeout, "memory_bytes": memory}
    return {name: value for name, value in asked.items() if value is not None}
