"""One cell in one fresh process, under `pyperf.Runner`: prepare, warm up, time, and prove each timed value.

`python -m harness.worker.measure JOB -o FILE …` is pyperf's manager, which starts this module again as its one worker;
everything happens there, and nothing is compiled in the manager. pyperf's file has the times; what pyperf can't carry
(phases may be zero, curves, the proof, the reason for a failure) goes into the job's outcome file.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import pyperf

from engines.api import Trainer
from harness.worker import figures
from harness.worker.job import Job, Outcome, read_job, ready, run_job, thin
from harness.worker.lifeline import end_with_the_harness
from harness.worker.pace import HAS_JIT, around, pace
from harness.worker.proof import Proof, prepare_proof

SLOW_STEP_SECONDS = 5.0
"""From here on a process gives one value, which is one step: the calibration's step was its warm-up."""

JIT_SECONDS = 2.0
"""A JIT trains so long before steps are counted: PyPy takes `baseline` on `xor` from 1 ms a step to 36 µs in 1.5 s, and
values of so many cold steps would be a few milliseconds long, and still in its warm-up."""

LOSS_POINTS = 100


def main(module: str = "harness.worker.measure") -> None:
    """pyperf's manager, or its worker when pyperf started `module`, which is to call this again.

    Both end with their parents: the worker with the manager, and that with the harness.
    """
    end_with_the_harness()
    runner = pyperf.Runner(program_args=("-m", module), add_cmdline_args=_pass_job_on)
    runner.argparser.add_argument("job")
    args = runner.parse_args()
    job = read_job(args.job)
    if not args.worker:
        runner.bench_time_func(job["workload"], _only_in_the_worker)
    elif not run_job(job["outcome_file"], lambda: measure(runner, job)):
        sys.exit(1)


def measure(runner: pyperf.Runner, job: Job) -> Outcome:
    """Everything that the worker does.

    Raises Mismatch: a time is told only if every timed value was proven; and Misbehaved.
    """
    engine, workload, refusal = ready(job["engine"], job["workload"])
    if refusal:
        return {"status": "skipped", "reason": refusal}
    trainer = engine.prepare(workload, objects=Path(job["objects"]))
    phases, sizes = figures.phases(engine, trainer), figures.sizes(engine, trainer)
    compiler_bytes = peak_bytes(of_children=True)
    proof = prepare_proof(engine, trainer, workload, job)
    stretch = Stretch(trainer, workload.batch, proof)

    stretch_seconds, passes = calibrate(stretch, job)
    # Collections come every few steps: without an offset of its own each process would time the same part of a cycle.
    trainer.restart(batch=workload.batch)
    trainer.train(min(job["offset_steps"], stretch.most_steps))
    # pyperf would calibrate in a process of its own, which would have to compile once more.
    runner.args.loops = stretch.steps * passes
    if stretch_seconds / stretch.steps > SLOW_STEP_SECONDS:
        runner.args.warmups, runner.args.values = 0, 1
    metadata: dict[str, Any] = {
        "zoomgrad_engine": job["engine"],
        "zoomgrad_interpreter": job["interpreter"],
        **{f"zoomgrad_{phase}_seconds": seconds for phase, seconds in phases.items()},
    }
    pace()  # A JIT compiles it meanwhile.
    paces = [pace()]

    def time_value(steps: int) -> float:
        seconds = sum(stretch.prove() for _ in range(steps // stretch.steps))
        paces.append(pace())
        return seconds

    runner.bench_time_func(job["workload"], time_value, metadata=metadata)
    return {
        "status": "measured",
        "phases": phases,
        "stretch_steps": stretch.steps,
        "steps_per_value": stretch.steps * passes,
        "pace_seconds": around(paces)[-runner.args.values :],
        "peak_bytes": peak_bytes(),
        "peak_compiler_bytes": compiler_bytes if "object_bytes" in sizes else 0,
        **sizes,  # type: ignore[typeddict-item]
        **compiled_by(engine),
        # Steps are chosen first: of a fast engine there are many, and pairs of them all would take a while.
        "losses": [(step, trainer.losses[step]) for step in thin(range(len(trainer.losses)), LOSS_POINTS)],
        **proof.outcome(),
    }


def compiled_by(engine: Any) -> Outcome:
    """Which compiler an engine's C went through, and with which flags; nothing of an engine that compiles no C."""
    if not hasattr(engine, "toolchain"):
        return {}
    return {"compiler": str(engine.toolchain()), "compiler_flags": list(engine.flags)}


class Stretch:
    """The first `steps` steps of training, timed again and again, each time from the start."""

    def __init__(self, trainer: Trainer, batch: int, proof: Proof, steps: int = 1) -> None:
        self._trainer = trainer
        self._batch = batch
        self._proof = proof
        self.steps = steps
        self.most_steps = proof.steps

    def time(self) -> float:
        """Seconds of one pass, its restart aside."""
        self._trainer.restart(batch=self._batch)
        start = perf_counter()
        self._trainer.train(self.steps)
        return perf_counter() - start

    def prove(self) -> float:
        """The same, of a pass that is compared with the reference. Raises Mismatch."""
        seconds = self.time()
        self._proof.stretch(self._trainer, self.steps)
        return seconds


def calibrate(stretch: Stretch, job: Job) -> tuple[float, int]:
    """Find the stretch that a value takes: about how many seconds it takes now, and how many passes fill a value.

    It doubles until the next one would be longer than a value, or than the reference's, of an interpreter that is warm
    by then. A later block's process takes the same stretch, once before its warm-up.
    """
    if 0 < job["stretch_steps"] <= stretch.most_steps:
        stretch.steps = job["stretch_steps"]
        return stretch.time(), job["steps_per_value"] // stretch.steps
    warm_at = perf_counter() + (JIT_SECONDS if HAS_JIT else 0.0)
    while True:
        seconds = stretch.time()
        if 2 * stretch.steps <= stretch.most_steps and 2 * seconds <= job["value_seconds"]:
            stretch.steps *= 2
        elif perf_counter() >= warm_at:
            return seconds, max(1, math.ceil(job["value_seconds"] / seconds))


def peak_bytes(*, of_children: bool = False) -> int:
    """Largest resident set of this process so far, or of any child that has ended; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _pass_job_on(command: list[str], args: Any) -> None:
    command.append(args.job)


def _only_in_the_worker(loops: int) -> float:
    raise AssertionError("pyperf's manager runs nothing")


if __name__ == "__main__":
    main()
