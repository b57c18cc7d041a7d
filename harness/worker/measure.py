"""One cell in one fresh process, under `pyperf.Runner`: prepare, prove, warm up, time.

`python -m harness.worker.measure JOB -o FILE …` is pyperf's manager, which starts this module again as its one worker;
everything happens there, and nothing is compiled in the manager. pyperf's file has the times; what pyperf can't carry
(phases may be zero, curves, the proof, the reason for a failure) goes into the job's outcome file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pyperf

from engines.api import Trainer
from harness.worker.job import Job, Outcome, read_job, ready, run_job, thin
from harness.worker.pace import HAS_JIT, around, pace
from harness.worker.proof import Mismatch, prove

SLOW_STEP_SECONDS = 5.0
"""From here on a process gives one value, which is one step: the proof's steps were its warm-up."""

JIT_SECONDS = 2.0
"""A JIT trains so long before steps are counted: PyPy takes `baseline` on `xor` from 1 ms a step to 36 µs in 1.5 s, and
values of so many cold steps would be a few milliseconds long, and still in its warm-up."""

LOSS_POINTS = 100


def main(module: str = "harness.worker.measure") -> None:
    """pyperf's manager, or its worker when pyperf started `module`, which is to call this again."""
    runner = pyperf.Runner(program_args=("-m", module), add_cmdline_args=_pass_job_on)
    runner.argparser.add_argument("job")
    args = runner.parse_args()
    job = read_job(args.job)
    if not args.worker:
        runner.bench_time_func(job["workload"], _only_in_the_worker)
    elif not run_job(job["outcome_file"], lambda: measure(runner, job)):
        sys.exit(1)


def measure(runner: pyperf.Runner, job: Job) -> Outcome:
    """Everything that the worker does. The order matters: no timing before the proof."""
    engine, workload, refusal = ready(job["engine"], job["workload"])
    if refusal:
        return {"status": "skipped", "reason": refusal}
    trainer = engine.prepare(workload, objects=Path(job["objects"]))
    compiler_bytes = peak_bytes(of_children=True)
    try:
        proof = prove(engine, trainer, job)
    except Mismatch as mismatch:
        return {"status": "failed", "reason": str(mismatch), "remedy": "A wrong result has no speed: mend the engine."}
    trainer.restart(batch=workload.batch)

    step_seconds, steps = calibrate(trainer, job)
    # Collections come every few steps: without an offset of its own each process would time the same part of a cycle.
    trainer.train(job["offset_steps"])
    # pyperf would calibrate in a process of its own, which would have to compile once more.
    runner.args.loops = steps
    if step_seconds > SLOW_STEP_SECONDS:
        runner.args.warmups, runner.args.values = 0, 1
    metadata: dict[str, Any] = {
        "zoomgrad_engine": job["engine"],
        "zoomgrad_interpreter": job["interpreter"],
        **{f"zoomgrad_{phase}_seconds": seconds for phase, seconds in trainer.phases.items()},
    }
    pace()  # A JIT compiles it meanwhile.
    time_steps, paces = _timed(trainer), [pace()]

    def time_value(steps: int) -> float:
        seconds = time_steps(steps)
        paces.append(pace())
        return seconds

    runner.bench_time_func(job["workload"], time_value, metadata=metadata)
    return {
        "status": "measured",
        "phases": dict(trainer.phases),
        "steps_per_value": steps,
        "pace_seconds": around(paces)[-runner.args.values :],
        "peak_bytes": peak_bytes(),
        "peak_compiler_bytes": compiler_bytes if "object_bytes" in trainer.sizes else 0,
        **trainer.sizes,  # type: ignore[typeddict-item]
        **compiled_by(engine),
        # Steps are chosen first: of a fast engine there are millions, and pairs of them all would take a second.
        "losses": [(step, trainer.losses[step]) for step in thin(range(len(trainer.losses)), LOSS_POINTS)],
        **proof,
    }


def compiled_by(engine: Any) -> Outcome:
    """Which compiler an engine's C went through, and with which flags; nothing of an engine that compiles no C."""
    if not hasattr(engine, "toolchain"):
        return {}
    return {"compiler": str(engine.toolchain()), "compiler_flags": list(engine.flags)}


def calibrate(trainer: Trainer, job: Job) -> tuple[float, int]:
    """About how long a step takes now, and how many steps a value takes.

    It takes steps until they fill a value's time, of an interpreter that is warm by then. A later block's process
    trains that many before its warm-up, and is as warm.
    """
    time_steps, steps = _timed(trainer), job["steps_per_value"]
    if steps:
        return time_steps(steps) / steps, steps
    warm_at, steps = perf_counter() + (JIT_SECONDS if HAS_JIT else 0.0), 1
    while True:
        seconds = time_steps(steps)
        if seconds >= job["value_seconds"]:
            if perf_counter() >= warm_at:
                return seconds / steps, max(1, math.ceil(steps * job["value_seconds"] / seconds))
        else:
            steps *= 2


def peak_bytes(*, of_children: bool = False) -> int:
    """Largest resident set of this process so far, or of any child that has ended; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _timed(trainer: Trainer) -> Callable[[int], float]:
    """Seconds that so many further steps take, in the form that pyperf calls."""

    def time_steps(steps: int) -> float:
        start = perf_counter()
        trainer.train(steps)
        return perf_counter() - start

    return time_steps


def _pass_job_on(command: list[str], args: Any) -> None:
    command.append(args.job)


def _only_in_the_worker(loops: int) -> float:
    raise AssertionError("pyperf's manager runs nothing")


if __name__ == "__main__":
    main()
