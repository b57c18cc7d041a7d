"""Estimates in seconds, before anything runs: a block of a cell, all its blocks, vouching for a workload."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import engines
from engines import Engine
from engines.api import KEPT_FROM_SECONDS
from harness import workloads
from harness.machine.interpreters import Interpreter
from harness.procedure import CANDIDATES, DRILLS, JIT_SECONDS, MOST_STEPS, TRUSTED, TRUSTED_SECONDS, TRUSTED_STEPS
from harness.workloads import Workload
from results.record import Cell, Settings


@cache
def tape_rows(name: str) -> int:
    """About how many rows a step of that workload has; 0 where its data can't be had, and its cells are skipped."""
    workload = workloads.load(name)
    if workload.network:
        # Three rows a weight: itself, its product, its sum. Samples in one graph share the first.
        weights = sum((nin + 1) * nout for nin, nout in pairwise(workload.network.shape))
        return weights * (1 + 2 * workload.samples_per_step)
    # Other models follow no formula; they are small enough to be counted.
    try:
        row = workload.row(0)
        nn = engines.load("tuple").nn
        model, inputs = workload.model(nn), [nn.Neuron.Value(x) for x in row]
        return len(workload.loss(model, inputs, workload.outputs(model, inputs)).topo())
    except Exception:  # whatever a workload does here, it does in its workers, which record the reason
        return 0


DRILL_STEPS = sum(sum(drill.pieces) for drill in DRILLS)

STARTUP_SECONDS = 0.65
JIT_STARTUP_SECONDS = 1.15
COMPILER_SECONDS = 0.25
"""For the smallest of programs, with what is imported to load it."""
JIT_SPEEDUP = 5.0
"""Roughly, all of them; the plan's estimate needs no more."""


def choose_vouch_seconds(cells: Sequence[Cell], run_seconds: float) -> float:
    """About how long an engine may train that vouches for the others of a workload.

    Two do, after they were compiled and after the reference interpreted a few steps: together a share of the run.
    """
    workloads_there = {cell.workload for cell in cells}
    share = SHARE_OF_PROOF * run_seconds / max(1, len(workloads_there))
    return min(MOST_VOUCH_SECONDS, max(LEAST_VOUCH_SECONDS, (share - BEFORE_VOUCHING_SECONDS) / 2))


def vouching_seconds(workload: str, settings: Settings) -> float:
    """About how long it takes until a workload is vouched for, by the reference and two engines that are compiled."""
    rows, reference, compiled = tape_rows(workload), engines.load(TRUSTED), engines.load(CANDIDATES[0])
    interpreting = min(TRUSTED_SECONDS, settings.vouch_seconds, TRUSTED_STEPS * rows * reference.typical_row_seconds)
    preparing = COMPILER_SECONDS + rows * (compiled.typical_compile_row_seconds + reference.typical_row_seconds)
    training = min(settings.vouch_seconds, MOST_STEPS * rows * compiled.typical_row_seconds)
    return 3 * STARTUP_SECONDS + interpreting + 2 * (preparing + training)


LEAST_VOUCH_SECONDS, MOST_VOUCH_SECONDS = 3.0, 20.0
"""So long that what happens once a call of `train` is nothing beside the steps of a stretch; longer than needed."""
BEFORE_VOUCHING_SECONDS = 10.0
SHARE_OF_PROOF = 0.15
"""Of a run's time; the timed stretches' comparisons take some more. A run of seconds takes what LEAST says."""


def _refuses(engine: Engine, workload: Workload) -> bool:
    """Whether the engine's worker will end at once; one whose `supports` fails does, and records the reason."""
    try:
        return bool(engine.supports(workload))
    except Exception:
        return True


def cell_seconds(cell: Cell, settings: Settings, interpreter: Interpreter | None, blocks: int) -> float:
    """About how long the workers of a cell take, those of all its blocks."""
    return sum(block_seconds(cell, settings, interpreter, block) for block in range(blocks))


def block_seconds(cell: Cell, settings: Settings, interpreter: Interpreter | None, block: int) -> float:
    """About how long the worker for that cell takes in that block; 0 where its interpreter is missing.

    What is slow to compile compiles in the first block; later ones load its object.
    """
    if interpreter is None:
        return 0.0
    engine, rows = engines.load(cell.engine), tape_rows(cell.workload)
    startup = JIT_STARTUP_SECONDS if interpreter.has_jit else STARTUP_SECONDS
    if _refuses(engine, workloads.load(cell.workload)):
        return startup  # it says why not, and ends
    step = rows * engine.typical_row_seconds / (JIT_SPEEDUP if interpreter.has_jit else 1.0)
    compilation = rows * engine.typical_compile_row_seconds
    if block > 0 and compilation > KEPT_FROM_SECONDS:
        compilation = 0.0
    elif compilation:
        compilation += COMPILER_SECONDS
    # What is compiled goes through the drills; what is interpreted is compared over the steps that are timed.
    proof = DRILL_STEPS * step if engine.typical_compile_row_seconds else 0.0
    warmups = settings.jit_warmups if interpreter.has_jit else settings.warmups
    values = (1 if step > 1.0 else warmups + settings.values) * max(step, settings.value_seconds)
    calibration = max(step, settings.value_seconds, JIT_SECONDS if interpreter.has_jit and block == 0 else 0.0)
    return startup + compilation + proof + calibration + values
