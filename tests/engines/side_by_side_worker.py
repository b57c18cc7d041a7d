"""One process of `side_by_side`: prepares an engine of the checkout that it is started in, then times or counts steps.

`python side_by_side_worker.py JOB` prints its figures as JSON. It runs in older checkouts too, so it uses only what has
been the same for many commits: `load`, `check`, `supports`, `prepare`, and a trainer's methods.
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
"""At most this many of an engine, and no further one after this time: the first alone would vary by a third."""
LEAST_COUNTED_STEPS = 50


def main():
    """Do the job that the first argument holds as JSON; the last line of output is the outcome."""
    here = Path.cwd()
    sys.path[0] = str(here)  # in place of the folder of this file, which another checkout may own
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
    """How many steps take about VALUE_SECONDS: whole batches, so that each value has its share of the updates."""
    trainer = engine.prepare(workload)
    steps = workload.batch
    seconds = stretch(trainer, workload, steps)
    while 2 * seconds <= VALUE_SECONDS:
        steps *= 2
        seconds = stretch(trainer, workload, steps)
    return {"steps": max(1, round(steps / workload.batch * VALUE_SECONDS / seconds)) * workload.batch}


def timed(engine, workload, job):
    """Seconds of preparation and of a step, and a digest of the bits."""
    # The tool's own, in both checkouts: what is divided by must be the same work.
    pace = runpy.run_path(job["pace"])["pace"]
    preparations = []
    while len(preparations) < PREPARATIONS and sum(wall for wall, _ in preparations) < PREPARE_SECONDS:
        trainer = None
        start = perf_counter()
        trainer = engine.prepare(workload)
        preparations.append((perf_counter() - start, dict(trainer.phases)))
    # The warm-up. Some steps more than an even number of batches leave gradients behind, which a restart must clear.
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
    """Let callgrind write a dump for some steps, and one for twice as many."""
    compiled = hasattr(engine, "flags")
    if compiled:  # callgrind knows no AVX-512
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
    """Seconds of the first steps of training; the restart is not timed."""
    trainer.restart(batch=workload.batch)
    start = perf_counter()
    trainer.train(steps)
    return perf_counter() - start


def digest(*numbers):
    """A hash of doubles that takes both zeros for one, and every NaN."""
    found = hashlib.sha256()
    for each in numbers:
        found.update(array("d", (x + 0.0 if x == x else float("nan") for x in each)).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    main()
