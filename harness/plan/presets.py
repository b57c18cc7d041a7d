"""Presets, which `presets.toml` lists: named choices of cells, blocks and settings; and preset and choices -> cells."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import Field, TypeAdapter

from zoomgrad import engines
from zoomgrad.engines.api import UnknownName
from zoomgrad.engines.discovery import is_peer
from zoomgrad.harness import workloads
from zoomgrad.results.record import Cell, Model, Settings

OPT_IN = ("clang-O1-whole", "clang-O1-published", "cython", "mypyc", "rpython")
"""Engines that take minutes to compile the larger workloads, or that need packages which no environment has by default.
They run only where a preset or the user names them, and so do peers."""


class Part(Model):
    """Cells of a preset. The file explains the fields."""

    workloads: tuple[str, ...]
    engines: tuple[str, ...] = ()
    everywhere: bool = False
    also: tuple[str, ...] = ()
    cpython_only: bool = Field(default=False, alias="cpython-only")


class Preset(Model):
    """A named choice of cells and of how to measure them."""

    description: str
    blocks: int
    settings: Settings = Settings()
    parts: tuple[Part, ...]


PRESETS = TypeAdapter(dict[str, Preset]).validate_python(
    tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
)


def preset(name: str) -> Preset:
    """Return the preset of that name. Raises UnknownName with the nearest names."""
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]


def cells_of(
    chosen: Preset,
    interpreters: Sequence[str],
    *,
    main: Iterable[str],
    only_engines: Sequence[str] = (),
    only_workloads: Sequence[str] = (),
    only_interpreters: Sequence[str] = (),
) -> list[Cell]:
    """Cells of the preset, sorted by workload, interpreter and engine.

    interpreters: names that the run knows, including missing ones. main: the subset that every engine runs on. A
    non-empty `only_…` replaces the preset's choice, and every named engine then runs on every named interpreter.
    Raises UnknownName for a name that does not exist.
    """
    for name in only_interpreters:
        if name not in interpreters:
            raise UnknownName("interpreter", name, interpreters)
    everywhere = tuple(only_interpreters or interpreters)
    newest = set(only_interpreters or main)
    ordinary = [name for name in engines.names() if name not in OPT_IN and not is_peer(engines.load(name))]
    cells = {
        Cell(engine=engines.load(engine).name, interpreter=interpreter, workload=workloads.load(workload).name)
        for part in chosen.parts
        for workload in only_workloads or part.workloads
        for interpreter in everywhere
        if part.everywhere or interpreter in newest or interpreter in part.also
        if not part.cpython_only or interpreter.startswith("cpython") or interpreter in only_interpreters
        for engine in only_engines or part.engines or ordinary
    }
    order = [*dict.fromkeys((*only_workloads, *(name for part in chosen.parts for name in part.workloads)))]
    names = [*dict.fromkeys((*only_engines, *engines.names(), *(e for part in chosen.parts for e in part.engines)))]
    return sorted(
        cells,
        key=lambda cell: (order.index(cell.workload), interpreters.index(cell.interpreter), names.index(cell.engine)),
    )
