"""Presets -> cells. What a run is to measure, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import engines
from engines.api import UnknownName
from harness import workloads
from harness.interpreters import Interpreter
from results.record import Cell, Settings

HEADLINE = ("baseline", "hoisted", "replay")
"""The engines that also race on interpreters other than the fastest CPython and PyPy."""


@dataclass(frozen=True)
class Preset:
    """A named choice of cells and of the care they are measured with."""

    description: str
    blocks: int
    settings: Settings
    workloads: tuple[str, ...]
    headline_workloads: tuple[str, ...] = ()
    """What the headline engines run on the other interpreters."""
    everything: bool = False
    """Every engine on every interpreter."""


PRESETS = {
    "smoke": Preset(
        "every engine on the newest CPython and PyPy, on two small workloads; under a minute, for CI",
        blocks=1,
        settings=Settings(values=3, warmups=1, jit_warmups=3, value_seconds=0.1, timeout_seconds=60.0),
        workloads=("xor", "digits"),
    ),
    "quick": Preset(
        "every engine on the newest CPython and PyPy, the headline engines on the others; up to ten minutes",
        blocks=3,
        settings=Settings(),
        workloads=("digits", "mnist"),
        headline_workloads=("digits",),
    ),
    "full": Preset(
        "everything, with many blocks; hours",
        blocks=10,
        settings=Settings(values=5, warmups=2, jit_warmups=10, value_seconds=1.0, timeout_seconds=3600.0),
        workloads=workloads.names(),
        everything=True,
    ),
}


def preset(name: str) -> Preset:
    """The preset of that name. Raises UnknownName, with the nearest names."""
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]


def cells(
    chosen: Preset,
    interpreters: Sequence[str],
    *,
    main: Iterable[str],
    only_engines: Sequence[str] = (),
    only_workloads: Sequence[str] = (),
    only_interpreters: Sequence[str] = (),
) -> list[Cell]:
    """The preset's cells, in the order workload, interpreter, engine.

    interpreters: names that the run knows, missing ones included; main: those of them that every engine runs on. What
    is named in an `only_…` replaces the preset's own choice: then every named engine meets every named interpreter.
    Raises UnknownName for a name that does not exist.
    """
    main = set(only_interpreters or (interpreters if chosen.everything else main))
    for name in only_interpreters:
        if name not in interpreters:
            raise UnknownName("interpreter", name, interpreters)
    engine_names = [engines.load(name).name for name in only_engines] or list(engines.names())
    workload_names = [workloads.load(name).name for name in only_workloads or chosen.workloads]
    others = set() if only_interpreters else set(interpreters) - main
    found = []
    for workload in workload_names:
        for interpreter in interpreters:
            for engine in engine_names:
                headline = interpreter in others and (engine in HEADLINE or bool(only_engines))
                if interpreter in main or (headline and workload in (only_workloads or chosen.headline_workloads)):
                    found.append(Cell(engine=engine, interpreter=interpreter, workload=workload))
    return found


STARTUP_SECONDS = 1.0
JIT_STARTUP_SECONDS = 2.5
JIT_SPEEDUP = 5.0
"""Roughly; the plan's estimate needs no more."""


def estimate_seconds(cell: Cell, settings: Settings, interpreter: Interpreter | None) -> float:
    """About how long one worker for that cell takes; 0 where its interpreter is missing."""
    if interpreter is None:
        return 0.0
    workload = workloads.load(cell.workload)
    # Three rows a weight: itself, its product, its sum. Samples in one graph share the first.
    rows = workload.weights * (1 + 2 * workload.samples_per_step)
    step = rows * engines.load(cell.engine).typical_row_seconds / (JIT_SPEEDUP if interpreter.has_jit else 1.0)
    proof = (2 + settings.proof_steps) * step
    warmups = settings.jit_warmups if interpreter.has_jit else settings.warmups
    values = (1 if step > 1.0 else warmups + settings.values) * max(step, settings.value_seconds)
    calibration = max(step, 1.5 * settings.value_seconds)
    return (JIT_STARTUP_SECONDS if interpreter.has_jit else STARTUP_SECONDS) + proof + calibration + values
