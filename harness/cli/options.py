"""Options and arguments that several commands share, each declared once.

Typer turns a BadParameter into a usage error.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Annotated, Any, Optional

import typer

from zoomgrad.harness.plan.presets import Selection
from zoomgrad.results.files import Unreadable


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


def _completion(module: str, names: str) -> Callable[[str], list[str]]:
    """Complete the last name of a list separated by commas. The module is imported late, because only completion does.

    names: a function of the module that returns all names.
    """

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        all_names = attrgetter(names)(import_module(f"zoomgrad.{module}"))()
        return [f"{before}{comma}{name}" for name in all_names if name.startswith(last)]

    return complete


_engines = _completion("engines", "names")
_workloads = _completion("harness.workloads", "names")
_presets = _completion("harness.plan.presets", "PRESETS.keys")


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
        "--interpreters", "-i", help="Only these interpreters, separated by commas: names, or NAME=PATH of any build."
    ),
]
_ENGINE = named("--engine", "-e", autocompletion=_engines, help="Engine to use; see `zoomgrad list`.")
Engine = Annotated[str, _ENGINE]
SomeEngine = Annotated[Optional[str], _ENGINE]
Interpreter = Annotated[
    Optional[str],
    typer.Option(
        "--interpreter",
        "-i",
        metavar="NAME",
        help="Interpreter to use; see `zoomgrad list`. Default: the one that runs zoomgrad.",
    ),
]
Workload = Annotated[str, typer.Argument(autocompletion=_workloads, help="Workload; see `zoomgrad list`.")]
Preset = Annotated[
    Optional[str], named("--preset", "-p", autocompletion=_presets, help="Preset of the new run; see `zoomgrad list`.")
]
Run = Annotated[Optional[str], a_run("Run", "the newest")]
Blocks = Annotated[Optional[int], typer.Option(min=1, help="Processes per cell. An interval needs at least three.")]
Timeout = Annotated[Optional[float], typer.Option(min=1, help="Time limit of a worker, in seconds.")]
Memory = Annotated[
    Optional[float], typer.Option(min=0.01, max=1e6, metavar="GIB", help="Memory limit of a worker, in GiB.")
]
Budget = Annotated[
    Optional[float], typer.Option(min=1, metavar="SECONDS", help="Add no block that would end later. Default: 570.")
]
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
    bool, typer.Option("--quiet", "-q", callback=_hush, expose_value=False, help="Print the last line and errors only.")
]
Json = Annotated[
    bool, typer.Option("--json", callback=_clear, help="Print one JSON object; everything else goes to stderr.")
]


def selection(*chosen: Optional[list[str]]) -> Selection:
    """Return the Selection of the three options; None means all."""
    return Selection(*(names or () for names in chosen))


def refuse_useless(context: typer.Context, run: str, *names: str) -> None:
    """Raise Unreadable if one of these parameters, useless for a finished run, is on the command line."""
    written = {name for name in names if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}
    if useless := ", ".join(each.opts[0] for each in context.command.params if each.name in written):
        raise Unreadable(f"{run} is a finished run, so {useless} would have no effect\n  Leave out these options.")


def limits(timeout: float | None, memory: float | None = None) -> dict[str, Any]:
    """Fields of Settings for the limits on the command line."""
    values = {"timeout_seconds": timeout, "memory_bytes": memory and int(memory * 2**30)}
    return {name: value for name, value in values.items() if value is not None}
