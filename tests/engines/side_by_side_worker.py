"""Worker process of `side_by_side`: prepare an engine of the current checkout, then time or count its steps.

`python side_by_side_worker.py JOB` prints its figures as JSON. It also runs in older checkouts, so it uses only what
has not changed for many commits: `load`, `check`, `supports`, `prepare`, and a trainer's methods.
"""

import ctypes
import hashlib
import json
import runpy
import sys
from array import array
from pathlib import Path
from statistics import median
from time import perf_counter

VALUES = 7
VALUE_SECONDS = 0.1
PREPARATIONS, PREPARE_SECONDS = 5, 1.0
"""Prepare an engine at most this many times, and not again after this time. A single preparation varies by a third."""
LEAST_COUNTED_STEPS = 50


def main():
    """Run the job given as JSON in the first argument, and print the outcome as the last line."""
    here = Path.cwd()
    sys.path[0] = str(here)  # replaces the folder of this file, which may belong to another checkout
    job = json.loads(sys.argv[1])

    import engines
    from harness import workloads

    assert here in Path(engines.__file__).resolve().parents, f"{engines.__file__} is not in {here}"
    engine, workload = engines.load(job["engine"]), workloads.load(job["workload"])
    engine.check()
    refusal = engine.supports(workload)
    assert not refusal, refusal
    workload.data()
    print(json.dumps(WORK[job["what"]](engine, workload, job)))


def scout(engine, workload, job):
    """Return how many steps take about VALUE_SECONDS, in whole batches, so that each value has its share of updates."""
    trainer = engine.prepare(workload)
    steps = workload.batch
    seconds = stretch(trainer, workload, steps)
    while 2 * seconds <= VALUE_SECONDS:
        steps *= 2
        seconds = stretch(trainer, workload, steps)
    return {"steps": max(1, round(steps / workload.batch * VALUE_SECONDS / seconds)) * workload.batch}


def timed(engine, workload, job):
    """Return the seconds of preparation and of a step, and a digest of the bits."""
    # Both checkouts use this checkout's pace file, because both must be divided by the same work.
    pace = runpy.run_path(job["pace"])["pace"]
    preparations = []
    while len(preparations) < PREPARATIONS and sum(wall for wall, _ in preparations) < PREPARE_SECONDS:
        trainer = None
        start = perf_counter()
        trainer = engine.prepare(workload)
        preparations.append((perf_counter() - start, dict(trainer.phases)))
    # Warm up. The extra step leaves a partial batch's gradients behind, which a restart must clear.
    stretch(trainer, workload, max(job["steps"], 2 * workload.batch) + 1)
    bits = digest(trainer.losses, trainer.parameters())
    values, paced = [], []
    before = pace()
    for _ in range(VALUES):
        values.append(stretch(trainer, workload, job["steps"]) / job["steps"])
        after = pace()
        paced.append(values[-1] * 2 / (before + after))
        before = after
    return {
        "step_seconds": median(values),
        "paced_step": median(paced),
        "compile_seconds": median(sum(phases.values()) for _, phases in preparations),
        "prepare_seconds": preparations[0][0],
        "bits": bits,
        "values": values,
        "preparations": preparations,
    }


def counted(engine, workload, job):
    """Make callgrind write one dump for some steps and one for twice as many."""
    compiled = hasattr(engine, "flags")
    if compiled:  # callgrind does not support AVX-512
        engine.flags = tuple(job["target"] if flag == "-march=native" else flag for flag in engine.flags)
    trainer = engine.prepare(workload)
    requests = ctypes.CDLL(job["requests"])
    steps = -(-LEAST_COUNTED_STEPS // workload.batch) * workload.batch
    stretch(trainer, workload, steps)
    for portion in (steps, 2 * steps):
        trainer.restart(batch=workload.batch)
        requests.start()
        trainer.train(portion)
        requests.stop()
    return {"steps": steps}


WORK = {"scout": scout, "time": timed, "count": counted}


def stretch(trainer, workload, steps):
    """Return the seconds of the first steps of training, without the restart."""
    trainer.restart(batch=workload.batch)
    start = perf_counter()
    trainer.train(steps)
    return perf_counter() - start


def digest(*numbers):
    """Return a hash of doubles in which both zeros are equal, and all NaNs are."""
    found = hashlib.sha256()
    for each in numbers:
        found.update(array("d", (x + 0.0 if x == x else float("nan") for x in each)).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    main()
