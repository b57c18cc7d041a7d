"""Runs of one commit on one machine -> the noise floor: how much speedups differ although nothing changed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Annotated, Final

from pydantic import Field

from results.comparability import same_machine, unlike_settings
from results.fields import CellKey, Moment, Name, OneLine
from results.files import inside, read, write_atomically
from results.record import Cell, Model, Record, Run
from results.samples import Blocks, baseline_of, common, compiled_seconds, step_seconds, step_seconds_as_measured
from results.stats import intervals
from results.store import RUNS

MOST: Final = 1e6
"""Upper bound of a floor; no real change exceeds it."""


class Noise(Model):
    """A machine's noise floor: an A/A measurement."""

    machine: dict[OneLine, OneLine]
    created_at: Moment
    """When the last of the runs was made."""
    runs: tuple[Name, ...]
    floors: dict[CellKey, Annotated[float, Field(ge=0.0, le=MOST)]]
    """By cell key, the change of speedup that two runs exceed by chance once in twenty times: 0.04 means 4 %."""

    compile_floors: dict[CellKey, Annotated[float, Field(ge=0.0, le=MOST)]] = Field(default_factory=dict)
    """The same for compile times in steps of the baseline, as the gate compares them. Empty in older files."""

    def floor(self, cell: Cell) -> float | None:
        return self.floors.get(cell.key)

    def compile_floor(self, cell: Cell) -> float | None:
        return self.compile_floors.get(cell.key)


def noise(runs: Sequence[tuple[Run, Iterable[Record]]]) -> Noise:
    """Return the floor of every cell that at least two of the runs measured.

    Raises ValueError for fewer than two runs, and for runs that differ in commit, machine or settings.
    """
    _refuse_unlike([run for run, _ in runs])
    steps: dict[Cell, list[float]] = defaultdict(list)
    compiled: dict[Cell, list[float]] = defaultdict(list)
    for _, of_run in runs:
        records = list(of_run)
        _add_ratios(steps, step_seconds(records), step_seconds(records))
        # As the gate compares them: neither side has a pace.
        _add_ratios(compiled, step_seconds_as_measured(records), compiled_seconds(records))
    last = max((run for run, _ in runs), key=lambda run: run.created_at)
    return Noise(
        machine=last.machine,
        created_at=last.created_at,
        runs=tuple(run.id for run, _ in runs),
        floors={cell.key: _floor(found) for cell, found in steps.items() if len(found) > 1},
        compile_floors={cell.key: _floor(found) for cell, found in compiled.items() if len(found) > 1},
    )


def _add_ratios(logs: dict[Cell, list[float]], bases: Mapping[Cell, Blocks], measured: Mapping[Cell, Blocks]) -> None:
    """Add the logarithm of one run's ratio of the baseline's steps to each cell's times."""
    for cell, blocks in measured.items():
        base = baseline_of(cell)
        if cell != base and base in bases:
            over, under = common(bases[base], blocks)
            if over:
                logs[cell].append(math.log(intervals.ratio_of_blocks(over, under)))


def _floor(logs: Sequence[float]) -> float:
    """Return the floor for the logarithms of one cell's speedups.

    The difference of two runs has twice the variance of one, hence √2. With so few runs, Student's t gives the bound.
    """
    return math.expm1(min(intervals.student(len(logs)) * math.sqrt(2) * stdev(logs), math.log1p(MOST)))


def _refuse_unlike(runs: Sequence[Run]) -> None:
    if len({(run.id, run.created_at) for run in runs}) < max(len(runs), 2):
        raise ValueError("noise is the difference between runs: name at least two runs, each once")
    first, *others = runs
    for other in others:
        if other.commit != first.commit or not same_machine(other.machine, first.machine):
            raise ValueError(
                f"{other.id} and {first.id} differ in commit or machine, so they differ by more than noise"
            )
        if unlike := unlike_settings(other, first):
            raise ValueError(f"{other.id} and {first.id} were measured differently: {'; '.join(unlike)}")


def keep_noise(preset: str, found: Noise, under: Path = RUNS) -> Path:
    """Write a preset's floor beside this machine's runs, where later gates find it; return the file's path."""
    path = _file(preset, under)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, found.model_dump_json(indent=1))
    return path


def noise_of(run: Run, under: Path = RUNS) -> Noise | None:
    """Return the floor of the run's preset on its machine; None if it was never measured there."""
    path = _file(run.preset, under)
    found = read(path, Noise) if path.exists() else None
    return found if found and same_machine(found.machine, run.machine) else None


def _file(preset: str, under: Path) -> Path:
    return inside(under, f"noise-{preset}.json")
