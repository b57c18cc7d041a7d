"""Preset and choices -> cells: engines × workloads × interpreters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zoomgrad import engines
from zoomgrad.engines.api import UnknownName
from zoomgrad.harness import workloads
from zoomgrad.harness.plan.presets import PEERS, SLOW_TO_COMPILE, TRANSLATED, Preset
from zoomgrad.results.record import Cell


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
    ordinary = _all_but(*SLOW_TO_COMPILE, *TRANSLATED, *PEERS)
    chosen_cells = {
        Cell(engine=engines.load(engine).name, interpreter=interpreter, workload=workloads.load(workload).name)
        for part in chosen.parts
        for workload in only_workloads or part.workloads
        for interpreter in everywhere
        if part.everywhere or interpreter in newest
        if not part.cpython_only or interpreter.startswith("cpython") or interpreter in only_interpreters
        for engine in only_engines or part.engines or ordinary
    }
    order = [*dict.fromkeys((*only_workloads, *(name for part in chosen.parts for name in part.workloads)))]
    names = [*dict.fromkeys((*only_engines, *engines.names(), *(e for part in chosen.parts for e in part.engines)))]
    return sorted(
        chosen_cells,
        key=lambda cell: (order.index(cell.workload), interpreters.index(cell.interpreter), names.index(cell.engine)),
    )


def _all_but(*names: str) -> tuple[str, ...]:
    return tuple(name for name in engines.names() if name not in names)
