"""`harness.worker.measure` with an engine that misbehaves: the job's `misbehaviour` is Python code to run first.

The code can use `engine`, `job` and `prepared(change)`, which calls `change(trainer)` after the engine has prepared.
"""

import json
import sys
from pathlib import Path

from zoomgrad import engines
from zoomgrad.harness.worker import measure

MODULE = "tests.harness.misbehaving.measure"


class Changeable:
    """An engine whose attributes may be replaced, which a row of the table forbids."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        return getattr(self._engine, name)


def misbehave(job):
    engine = Changeable(engines.load(job["engine"]))
    engines.load = lambda name: engine
    prepare = engine.prepare

    def prepared(change):
        def prepare_and_change(workload):
            trainer = prepare(workload)
            change(trainer)
            return trainer

        engine.prepare = prepare_and_change

    exec(job["misbehaviour"], {"engine": engine, "job": job, "prepared": prepared})


if __name__ == "__main__":
    if "--worker" in sys.argv:  # not pyperf's manager
        misbehave(json.loads(Path(sys.argv[-1]).read_text()))
    measure.main(MODULE)
