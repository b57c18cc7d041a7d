"""Measure ready time: take one training step as a user's script would, then say when it was done.

`python -m zoomgrad.harness.worker.ready ENGINE WORKLOAD JOB`. The harness reads the monotonic clock just before it
starts this process, and this process reads it after the first step. Linux and macOS have one such clock for all
processes. Until then this process imports what a user's script would import, and `lifeline`, which takes 4 ms.
"""

from __future__ import annotations

import sys
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any, Optional

from zoomgrad.harness.worker.lifeline import end_with_the_harness

if TYPE_CHECKING:
    from zoomgrad.harness.worker.job import ReadyReply


def first_step(engine_name: str, workload_name: str) -> Optional[str]:
    """Train one step. Return why the engine can't run the workload; None if it can."""
    from zoomgrad import engines
    from zoomgrad.harness import workloads

    engine = engines.load(engine_name)
    engine.check()
    workload = workloads.load(workload_name)
    refusal = engine.supports(workload)
    if not refusal:
        trainer = engine.prepare(workload)
        trainer.train(getattr(trainer, "first_steps", 1))
    return refusal


def main() -> None:
    """Take the step, read the clocks, and only then import what the reply needs."""
    end_with_the_harness()
    engine_name, workload_name, job_file = sys.argv[1:]
    refusal: Any = None
    wrong: Optional[Exception] = None
    try:
        refusal = first_step(engine_name, workload_name)
    except Exception as error:  # `run_job` turns it into a reply
        wrong = error
    at_seconds, own_seconds = monotonic(), process_time()

    from zoomgrad.harness.worker.job import read_json, run_job

    def reply() -> ReadyReply:
        if wrong:
            raise wrong
        if refusal:
            return {"status": "skipped", "reason": str(refusal)}
        return {"status": "measured", "at_seconds": at_seconds, "cpu_seconds": own_seconds + _childrens_seconds()}

    if not run_job(read_json(job_file)["reply_file"], reply):
        sys.exit(1)


def _childrens_seconds() -> float:
    """Processor time of all ended children; 0 if the system does not report it."""
    try:
        import resource
    except ImportError:
        return 0.0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
