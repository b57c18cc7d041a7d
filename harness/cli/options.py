"""Options and arguments that several commands share, each declared once, and the parsers of their values.

Typer turns a BadParameter into a usage error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
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


def some_names(texts: Optional[list[str]]) -> list[str]:
    """Split values at commas into names, without duplicates. Refuse an empty name."""
    for text in texts or ():
        if not all(name.strip() for name in text.split(",")):
            raise typer.BadParameter(f"{text!r} has an empty name; write names like `a,b`, or leave the option out")
    return list(dict.fromkeys(name.strip() for text in texts or () for name in text.split(",")))


# Completion of values. Packages are imported late, because only completion needs all names.


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Names that complete the last one of a list separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


def _engines(incomplete: str) -> list[str]:
    from zoomgrad import engines

    return _beginning(incomplete, engines.names())


def _workloads(incomplete: str) -> list[str]:
    from zoomgrad.harness import workloads

    return _beginning(incomplete, workloads.WORKLOADS)


def _interpreters(incomplete: str) -> list[str]:
    from zoomgrad.harness.machine import interpreters

    return _beginning(incomplete, [each.name for each in interpreters.discover()])


def _presets(incomplete: str) -> list[str]:
    from zoomgrad.harness.plan import presets

    return _beginning(incomplete, presets.PRESETS)


def named(*flags: str, metavar: str = "NAME", **settings: Any) -> Any:
    """An option that takes one name, which must not be empty."""
    return typer.Option(*flags, callback=some_name, metavar=metavar, **settings)


def listed(*flags: str, **settings: Any) -> Any:
    """An option that takes names: separated by commas, or repeated."""
    return typer.Option(*flags, callback=some_names, metavar="NAMES", **settings)


def a_run(text: str, default: str) -> Any:
    """An argument that names a run."""
    return typer.Argument(metavar="RUN", callback=some_name, help=f"{text}: id, folder or file. Default: {default}.")


_LISTED = "separated by commas; see `zoomgrad list`"
Engines = Annotated[
    Optional[list[str]], listed("--engines", "-e", autocompletion=_engines, help=f"Only these engines, {_LISTED}.")
]
Workloads = Annotated[
    Optional[list[str]],
    listed("--workloads", "-w", autocompletion=_workloads, help=f"Only these workloads, {_LISTED}."),
]
Interpreters = Annotated[
    Optional[list[str]],
    listed(
        "--interpreters",
        "-i",
        autocompletion=_interpreters,
        help="Only these interpreters, separated by commas: names, or NAME=PATH of any build.",
    ),
]
_ENGINE = typer.Option(
    "--engine", "-e", metavar="NAME", autocompletion=_engines, help="Engine to use; see `zoomgrad list`."
)
Engine = Annotated[str, _ENGINE]
SomeEngine = Annotated[Optional[str], _ENGINE]
Interpreter = Annotated[
    Optional[str],
    typer.Option(
        "--interpreter",
        "-i",
        metavar="NAME",
        autocompletion=_interpreters,
        help="Interpreter to use; see `zoomgrad list`. Default: the one that runs zoomgrad.",
    ),
]
Workload = Annotated[str, typer.Argument(autocompletion=_workloads, help="Workload; see `zoomgrad list`.")]
Preset = Annotated[
    Optional[str],
    named("--preset", "-p", autocompletion=_presets, help="Preset of the new run; see `zoomgrad list`."),
]
Run = Annotated[Optional[str], a_run("Run", "the newest")]
Blocks = Annotated[Optional[int], typer.Option(min=1, help="Processes per cell. An interval needs at least three.")]
Timeout = Annotated[Optional[float], typer.Option(min=1, help="Time limit of a worker, in seconds.")]
Memory = Annotated[
    Optional[int], typer.Option(parser=size, metavar="SIZE", help="Memory limit of a worker, for example 8G.")
]
Seed = Annotated[
    Optional[int], typer.Option(min=0, help="Seed of the shuffled order. Default: random. It is recorded either way.")
]
Until = Annotated[
    Optional[float],
    typer.Option(
        parser=share, metavar="SHARE", help="Add blocks until every speedup is known to within this share, e.g. 5%."
    ),
]
Budget = Annotated[
    Optional[float], typer.Option(parser=duration, metavar="TIME", help="Add no block that would end later, e.g. 10m.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files of the same names.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="If another run is measuring on this machine, wait for it instead of failing.")
]


def _hush(is_quiet: bool) -> bool:
    from zoomgrad.harness.cli.console import out

    out.quiet = is_quiet
    return is_quiet


def _clear(is_json: bool) -> bool:
    from zoomgrad.harness.cli.console import out

    out.stderr = is_json  # so that standard output holds the object alone
    return is_json


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_hush, expose_value=False, help="Print the last line and errors only."),
]
Json = Annotated[
    bool, typer.Option("--json", callback=_clear, help="Print one JSON object; everything else goes to stderr.")
]


@dataclass(frozen=True)
class Selection:
    """The cells that the user chose: names of engines, workloads and interpreters, each empty for all."""

    engines: list[str]
    workloads: list[str]
    interpreters: list[str]

    @property
    def options(self) -> list[str]:
        """The options that the user gave."""
        return [f"--{field.name}" for field in fields(self) if getattr(self, field.name)]


def selection(engines: Any, workloads: Any, interpreters: Any) -> Selection:
    """What the three options say; None of one that was left out means all."""
    return Selection(*(list(names or ()) for names in (engines, workloads, interpreters)))


def limits(timeout: float | None, memory: int | None = None) -> dict[str, Any]:
    """Fields of Settings for the limits that the user gave."""
    asked = {"timeout_seconds": timeout, "memory_bytes": memory}
    return {name: value for name, value in asked.items() if value is not None}
