"""Time estimates in seconds, made before anything runs: for a block of a cell, and for vouching."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from zoomgrad import engines
from zoomgrad.harness import workloads
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.procedure import CANDIDATES, DRILLS, MOST_STEPS, REPEAT_SECONDS, TRUSTED, TRUSTED_SECONDS
from zoomgrad.results.record import Cell, Settings

FEW_WEIGHTS = 200
"""Up to this many weights, a network is built to count its rows."""
DRILL_STEPS = sum(sum(drill.pieces) for drill in DRILLS)
STARTUP_SECONDS = 0.7
"""Of a worker with pyperf, which is two processes."""
COMPILER_SECONDS = 0.25
"""Compile time of the smallest program, including the imports to load it."""
JIT_SPEEDUP = 5.0
"""Rough figure for all interpreted engines, which is enough for an estimate."""


@cache
def tape_rows(name: str) -> int:
    """Approximate tape rows of a step of that workload; 0 if its data is missing, so that its cells are skipped."""
    workload = workloads.load(name)
    if workload.network:
        # Three rows per weight: itself, its product, its sum. Samples in one graph share the first.
        weights = sum((nin + 1) * nout for nin, nout in pairwise(workload.network.shape))
        if weights > FEW_WEIGHTS:
            return weights * (1 + 2 * workload.samples_per_step)
    # A small network has as many rows in its loss. Other models have no formula, but are small enough to count.
    try:
        nn = engines.load("tuple").nn
        model, inputs = workload.model(nn), [nn.Neuron.Value(x) for x in workload.row(0)]
        return len(workload.loss(model, inputs, workload.outputs(model, inputs)).topo())
    except Exception:  # the workload fails in its workers too, and they record the reason
        return 0


def vouching_seconds(workload: str, settings: Settings) -> float:
    """Approximate time until the reference and two compiled engines vouch for a workload."""
    rows, reference, compiled = tape_rows(workload), engines.load(TRUSTED), engines.load(CANDIDATES[0])
    step, compiling = compiled.typical_row_seconds
    preparing = COMPILER_SECONDS + rows * (compiling + reference.typical_row_seconds[0])
    training = min(settings.vouch_seconds, MOST_STEPS * rows * step)
    return 3 * STARTUP_SECONDS + min(TRUSTED_SECONDS, training) + 2 * (preparing + training)


def block_seconds(cell: Cell, settings: Settings, interpreter: Interpreter | None, block: int) -> float:
    """Approximate time of the cell's worker in that block; 0 if there is none."""
    if interpreter is None:
        return 0.0
    engine, rows = engines.load(cell.engine), tape_rows(cell.workload)
    row_step, row_compiling = engine.typical_row_seconds
    step = rows * row_step / (JIT_SPEEDUP if interpreter.has_jit else 1.0)
    compiles = row_compiling > 0
    compilation = rows * row_compiling + COMPILER_SECONDS * compiles
    # Compiled engines run the drills. Interpreted ones are compared only over the timed steps.
    proof = DRILL_STEPS * step * compiles
    warmups = settings.jit_warmups if interpreter.warms_up else settings.warmups
    values = (2 if step > 1.0 else 1 + warmups + settings.values) * max(step, settings.value_seconds)  # 1 to calibrate
    seconds = STARTUP_SECONDS + compilation + proof + values
    return 0.0 if block and seconds > REPEAT_SECONDS else seconds
