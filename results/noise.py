"""Runs of the same sources -> by how much speedups differ on this machine although nothing changed: the noise floor."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from pydantic import AwareDatetime

from results import stats
from results.machines import same_machine
from results.record import Cell, Model, Record, Run
from results.samples import baseline_of, common, step_seconds
from results.store import RUNS, read, write_atomically


class Noise(Model):
    """A machine's noise floor: an A/A measurement."""

    machine: dict[str, str]
    created_at: AwareDatetime
    """Of the last run."""
    runs: tuple[str, ...]
    floors: dict[str, float]
    """By a cell's key the largest change of its speedup between any two of the runs: 0.04 for 4 %."""

    def floor(self, cell: Cell) -> float | None:
        return self.floors.get(cell.key)


def noise(races: Sequence[tuple[Run, Iterable[Record]]]) -> Noise:
    """The floor of every cell that at least two of the runs measured. ValueError for fewer than two runs."""
    if len(races) < 2:
        raise ValueError("noise is a difference between runs: it takes two at least")
    logs: dict[Cell, list[float]] = defaultdict(list)
    for _, records in races:
        measured = step_seconds(records)
        for cell, blocks in measured.items():
            base = baseline_of(cell)
            if cell != base and base in measured:
                over, under = common(measured[base], blocks)
                if over:
                    logs[cell].append(math.log(stats.median_of_processes(over) / stats.median_of_processes(under)))
    last = max((run for run, _ in races), key=lambda run: run.created_at)
    return Noise(
        machine=last.machine,
        created_at=last.created_at,
        runs=tuple(run.id for run, _ in races),
        floors={cell.key: _largest_change(found) for cell, found in logs.items() if len(found) > 1},
    )


def keep_noise(preset: str, found: Noise, under: Path = RUNS) -> Path:
    """Keep a preset's floor beside this machine's runs, for every gate to come."""
    path = _file(preset, under)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, found.model_dump_json(indent=1))
    return path


def noise_of(run: Run, under: Path = RUNS) -> Noise | None:
    """The floor of the run's preset on its machine; None where it was never measured there."""
    path = _file(run.preset, under)
    found = read(path, Noise) if path.exists() else None
    return found if found and same_machine(found.machine, run.machine) else None


def _file(preset: str, under: Path) -> Path:
    return under / f"noise-{preset}.json"


def _largest_change(logs: Sequence[float]) -> float:
    return math.expm1(max(abs(one - other) for one, other in combinations(logs, 2)))
