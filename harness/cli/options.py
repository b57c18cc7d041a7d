"""What a user writes for a time, a size, a share or names -> a value; and options that several commands have.

Typer makes a BadParameter wrong use.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Optional

import typer

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h)?")


def duration(text: str) -> float:
    """`90`, `90s`, `10m`, `1h30m` in seconds."""
    squeezed = text.replace(" ", "")
    parts = _PART.findall(squeezed)
    if not parts or _PART.sub("", squeezed):
        raise typer.BadParameter(f"{text!r} is not a time; write 90s, 10m or 1h30m")
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not seconds:
        raise typer.BadParameter("must be more than 0")
    return seconds


_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)


def size(text: str) -> int:
    """`8G`, `512M`, `1.5 GiB` or `65536` in bytes; units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    found = int(float(match[1]) * _BYTES[match[2].upper()]) if match else 0
    if not match or found >= 1 << 62:
        raise typer.BadParameter(f"{text!r} is not a size; write 8G, 512M or 65536")
    if not found:
        raise typer.BadParameter("must be more than 0")
    return found


def share(text: str) -> float:
    """`5%` or `0.05` as a share of 1."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise typer.BadParameter(f"{text!r} is not a share; write 5% or 0.05")
    return value


def some_name(text: Optional[str]) -> Optional[str]:
    """The text of an option or argument that names something. Empty, it would pass for one that was left out."""
    if text is not None and not text.strip():
        raise typer.BadParameter(f"{text!r} names nothing; leave it out, or name something")
    return text


def some_names(text: Optional[str]) -> Optional[str]:
    """The same for several names, separated by commas."""
    if text is not None and not all(name.strip() for name in text.split(",")):
        raise typer.BadParameter(f"{text!r} has an empty name; leave the option out, or write names as in `a,b`")
    return text


def names(text: Optional[str]) -> list[str]:
    """The names in an option that takes several; one that is given twice counts once."""
    return list(dict.fromkeys(name.strip() for name in text.split(","))) if text else []


Engines = Annotated[
    Optional[str], typer.Option("--engines", callback=some_names, help="Only these, separated by commas.")
]
Workloads = Annotated[Optional[str], typer.Option("--workloads", callback=some_names, help="Only these.")]
Interpreters = Annotated[Optional[str], typer.Option("--interpreters", callback=some_names, help="Only these.")]
Timeout = Annotated[Optional[float], typer.Option(min=1, help="Seconds a worker may take.")]
Memory = Annotated[Optional[int], typer.Option(parser=size, metavar="SIZE", help="Memory a worker may take: 8G, say.")]
Output = Annotated[Optional[int], typer.Option(parser=size, metavar="SIZE", help="What it may print: 16M, say.")]
Processes = Annotated[Optional[int], typer.Option(min=2, help="Processes a worker may have at once.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait while another run of this machine is measuring.")]


def limits(
    timeout: float | None, memory: int | None = None, output: int | None = None, processes: int | None = None
) -> dict[str, Any]:
    """The fields of Settings that those options set."""
    asked = {
        "timeout_seconds": timeout,
        "memory_bytes": memory,
        "output_bytes": output,
        "most_processes": processes,
    }
    return {name: value for name, value in asked.items() if value is not None}
