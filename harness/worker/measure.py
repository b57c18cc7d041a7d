"""Measure one cell in one fresh process under `pyperf.Runner`: prepare, warm up, time, and prove each timed value.

`python -m zoomgrad.harness.worker.measure JOB -o FILE …` is pyperf's manager. It compiles nothing and starts this
module again as its one worker, which does everything. pyperf's file holds the times. The reply file holds the rest:
phases (which may be zero), curves, the proof, the reason for a failure.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any, Optional

import pyperf

from zoomgrad.engines.api import Shape
from zoomgrad.engines.training import Trainer
from zoomgrad.harness import workloads
from zoomgrad.harness.procedure import JIT_SECONDS
from zoomgrad.harness.worker.evidence import Evidence, Starts, left_by
from zoomgrad.harness.worker.job import Job, Reply, ready, run_job
from zoomgrad.harness.worker.lifeline import end_with_the_harness
from zoomgrad.harness.worker.proof import Proof, prepare_proof
from zoomgrad.harness.workloads import Workload

HAS_JIT = sys.implementation.name == "pypy"

SLOW_STEP_SECONDS = 5.0
"""With slower steps a process gives one value of one step, and calibration serves as its warm-up."""

FREE_RESTART = 0.02
"""A restart's time counts beyond this share of the training's, so that working ahead in a restart gains nothing."""

LONGEST_VALUE, LONGER, MOST_AROUND = 1.5, 8, 0.05
"""A stretch may take LONGEST_VALUE times a value's time; LONGER times that, if a slow restart and reading the results
take more than MOST_AROUND of it, as they do after one step of `native` on `mnist`."""

TYPICAL = 0.1
"""How far the mean length of a stretch's rows may be from that of all rows, as a share of it."""

ITERATIONS = 4_600_000 if HAS_JIT else 48_000
"""Of the work of `pace`, the same on every machine: about ten milliseconds, short compared with a value, long compared
with a clock tick."""

_RING = [1.0] * 4096


def main(module: str = "zoomgrad.harness.worker.measure") -> None:
    """Run as pyperf's manager, or as its worker if pyperf started this process.

    module: the module that pyperf's worker runs; it must call this function. The worker ends when the manager dies, and
    the manager when the harness dies.
    """
    end_with_the_harness()
    runner = pyperf.Runner(program_args=("-m", module), add_cmdline_args=lambda command, args: command.append(args.job))
    runner.argparser.add_argument("job")
    args = runner.parse_args()
    job = json.loads(Path(args.job).read_text(encoding="utf-8"))
    if not args.worker:
        runner.bench_time_func(job["workload"], _only_in_the_worker)
    elif not run_job(job["reply_file"], lambda: measure(runner, job)):
        sys.exit(1)


def measure(runner: pyperf.Runner, job: Job) -> Reply:
    """Prepare, calibrate, time and prove the cell. Return its figures, by their names in `results.record.Figures`.

    Raises Mismatch, because a time is reported only if every timed value was proven.
    """
    workload = workloads.load(job["workload"])
    engine = ready(job["engine"], workload)
    trainer = engine.prepare(workload)
    phases, sizes = dict(trainer.phases), dict(trainer.sizes)
    compiler_bytes = peak_bytes(of_children=True)
    proof = prepare_proof(engine, trainer, workload, job)
    stretch = Stretch(trainer, workload, proof)

    stretch_seconds, passes = calibrate(stretch, job, workload.shapes())
    passes = min(passes, len(proof.starts(stretch.steps)) // job["values"])  # no two timed stretches begin at one start
    stretch.prove()
    # Garbage collections come every few steps. Without the offset each process would time the same part of a cycle.
    trainer.restart(batch=workload.batch)
    trainer.train(min(job["offset_steps"], stretch.most_steps))
    # pyperf would calibrate in another process, which would have to compile again.
    runner.args.loops = stretch.steps * passes
    if stretch_seconds / stretch.steps > SLOW_STEP_SECONDS:
        runner.args.warmups, runner.args.values = 0, 1
    pace()  # lets a JIT compile it
    paces = [pace()]

    # Calibration and warm-ups repeat start 0.
    starts = itertools.chain([0] * runner.args.warmups * passes, proof.starts(stretch.steps))

    def time_value(steps: int) -> float:
        seconds = 0.0
        for start in itertools.islice(starts, steps // stretch.steps):
            seconds += stretch.time(start)
            stretch.prove()
        paces.append(pace())
        return seconds

    runner.bench_time_func(job["workload"], time_value)
    return {
        **sizes,  # first, because an engine must not replace what follows
        "status": "measured",
        "phases": phases,
        "stretch_steps": stretch.steps,
        "steps_per_value": stretch.steps * passes,
        "pace_seconds": [(before + after) / 2 for before, after in zip(paces, paces[1:])][-runner.args.values :],
        "peak_bytes": peak_bytes(),
        "peak_compiler_bytes": compiler_bytes if "object_bytes" in sizes else 0,
        **compiled_by(engine),
        "proof": proof.figure,
    }


def compiled_by(engine: Any) -> Reply:
    """Compiler and flags of an engine's C; empty for an engine that compiles no C."""
    tool = engine.toolchain()
    return {"compiler": str(tool), "compiler_flags": [*tool.own_flags, *engine.flags]} if tool else {}


class Stretch:
    """The first `steps` steps of training, timed from several starts.

    The clock stops after losses, gradients and parameters have been copied, so that an engine can't defer work until
    they are read.
    """

    def __init__(self, trainer: Trainer, workload: Workload, proof: Proof, steps: int = 1) -> None:
        self._trainer = trainer
        self._starts = Starts(trainer, workload)
        self._proof = proof
        self._last: Optional[tuple[int, int, Evidence]] = None
        self.steps, self.most_steps = steps, proof.steps
        self.around = 0.0  # seconds of the last pass that were no training

    def time(self, start: int = 0) -> float:
        """Seconds of one pass from that start: of its training, of reading the results, and of a slow restart."""
        begin = self._starts.begin(start)
        started = perf_counter()
        begin()
        restarted = perf_counter()
        self._trainer.train(self.steps)
        trained = perf_counter() - restarted
        self._last = self.steps, start, left_by(self._trainer)
        seconds = perf_counter() - restarted
        seconds += max(0.0, restarted - started - FREE_RESTART * seconds)
        self.around = seconds - trained
        return seconds

    def time_warm(self) -> float:
        """Seconds of one pass, after another one if the first may compile."""
        if getattr(self._trainer, "warms_up", False):
            self.time()
        return self.time()

    def prove(self) -> None:
        """Compare the last pass with the reference. Raises Mismatch."""
        assert self._last
        self._proof.stretch(*self._last)


def calibrate(stretch: Stretch, job: Job, shapes: Sequence[Shape]) -> tuple[float, int]:
    """Choose the stretch of a value. Return the approximate seconds of a pass and the number of passes per value.

    The stretch doubles while the result is closer to a value's time, and within the reference's longest stretch. With a
    JIT, calibration goes on until the interpreter is warm. In later blocks it only runs the first block's stretch once.
    shapes: of the workload's rows.
    """
    if 0 < job["stretch_steps"] <= stretch.most_steps:
        stretch.steps = job["stretch_steps"]
        return stretch.time(), job["steps_per_value"] // stretch.steps
    warm_at = perf_counter() + (JIT_SECONDS if HAS_JIT else 0.0)
    while True:
        seconds = stretch.time_warm()
        longest = LONGEST_VALUE * job["value_seconds"] * (LONGER if stretch.around > MOST_AROUND * seconds else 1)
        if 2 * stretch.steps <= stretch.most_steps and 2 * seconds <= longest:
            stretch.steps *= 2
        elif perf_counter() >= warm_at:
            if (steps := typical(shapes, stretch.steps, stretch.most_steps)) != stretch.steps:
                stretch.steps = steps
                seconds = stretch.time_warm()
            return seconds, max(1, round(job["value_seconds"] / seconds))


def typical(shapes: Sequence[Shape], steps: int, most: int) -> int:
    """A stretch of about `steps` whose rows are of typical length; `steps` if there is none.

    Rows of other lengths have graphs of other sizes, and engines are compared although slow ones take few steps. So the
    longest such stretch from a quarter of `steps` to all of them is chosen, else the shortest one of up to four times
    `steps`, and never more than `most`.

    Example: the first 16 names of `microgpt` have one of each length, so they are longer than names are on average, and
    a stretch of 16 steps becomes one of 8. The first name is too long as well, so one step becomes two.
    """
    if len(shapes) < 2:
        return steps
    lengths = {row: len(shape.columns) for shape in shapes for row in shape.rows}
    in_order, usual = [lengths[row] for row in sorted(lengths)], mean(lengths.values())

    def is_typical(count: int) -> bool:
        taken = mean(itertools.islice(itertools.cycle(in_order), count))  # a training begins again after the last row
        return abs(taken - usual) <= TYPICAL * usual

    shorter, longer = (steps, steps // 2, steps // 4), (2 * steps, 4 * steps)
    return next((count for count in (*shorter, *longer) if 0 < count <= most and is_typical(count)), steps)


def pace() -> float:
    """Seconds that a fixed piece of work takes now. A JIT compiles it during the first call.

    The speed of a cloud machine changes from second to second, and two processes rarely run at the same speed. Dividing
    a value's time by the time of this work, before and after it, cancels the change. ("Duet benchmarking", Bulej et
    al., ICPE 2020, runs the baseline between the values instead, which costs a second training in every process.)

    Another process on the same core competes for its execution ports and its cache. That hardly slows a chain of
    dependent multiplications, so the work loads and stores numbers, whose values stay at 1. It creates no object that
    the garbage collector tracks, because a collection's time would depend on the engine's heap.
    """
    ring = _RING
    start = perf_counter()
    for i in range(ITERATIONS):
        ring[i * 7 & 4095] = ring[i * 13 & 4095] * 0.5 + ring[i & 4095] * 0.499 + 0.001
    return perf_counter() - start


def peak_bytes(*, of_children: bool = False) -> int:
    """Largest resident set so far of this process or of any ended child."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _only_in_the_worker(loops: int) -> float:
    raise AssertionError("pyperf's manager runs nothing")


if __name__ == "__main__":
    main()
