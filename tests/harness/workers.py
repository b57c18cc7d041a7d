"""Fake of the process boundary: workers with scripted answers."""

from array import array
from pathlib import Path

import pyperf

from zoomgrad.harness.run.isolate import WorkerResult
from zoomgrad.harness.worker.evidence import Evidence, name_of, write_evidence

MEASURED = {
    "status": "measured",
    "phases": {},
    "stretch_steps": 8,
    "steps_per_value": 8,
    "pace_seconds": [0.01, 0.01],
    "peak_bytes": 1000,
    "peak_compiler_bytes": 0,
    "proof": {
        "reference": "tcc/cpython-3.13/xor",
        "steps": 8,
        "stretches": 3,
        "seconds": 0.5,
        "identical": True,
        "worst_error": 0.0,
    },
}
"""Reply of a real worker whose engine compiles nothing."""


def pyperf_json(tmp_path, step_seconds):
    """Return the file that pyperf's manager writes after one worker: one warm-up and these values."""
    run = pyperf.Run(
        step_seconds,
        warmups=[(50, 2 * step_seconds[0])],
        metadata={"name": "xor", "loops": 50, "hostname": "here"},
        collect_metadata=False,
    )
    file = tmp_path / "pyperf.json"
    pyperf.Benchmark([run]).dump(str(file), replace=True)
    return file.read_bytes()


class Workers:
    """A fake `Isolate` that measures every cell, unless `answers` has a reply for the engine or (task, engine)."""

    def __init__(self, tmp_path, answers=None):
        self.tmp_path = tmp_path
        self.answers = answers or {}
        self.jobs = []
        self.before_each = lambda: None
        self.vouched_steps = 64
        self.seconds = lambda engine, block: [0.1 + block, 0.2 + block]

    def __call__(self, task, python, job, *, settings, draw):
        self.before_each()
        self.jobs.append({"task": task, "python": python, "settings": settings, "draw": draw, **job})
        key = job["engine"] if task == "measure" else (task, job["engine"])
        answer = self.answers.get(key)
        if isinstance(answer, BaseException):
            raise answer
        if answer:
            return WorkerResult(answer, 1.5)
        if task == "vouch":
            steps = min(job["steps"], self.vouched_steps)
            numbers = Evidence(array("d", [1.0]), array("d", [2.0]), array("d", [3.0]))
            others = [name_of(1, start) for start in range(1, job["starts"] + 1)]
            write_evidence(Path(job["folder"]), [(name, numbers) for name in ("short", str(steps), *others)])
            return WorkerResult({"status": "measured", "drills": ["short"], "steps": steps}, 1.0)
        block = draw - 1
        reply = {
            "status": "measured",
            "phases": {"trace": 0.25},
            "stretch_steps": job["stretch_steps"] or 25,
            "steps_per_value": job["steps_per_value"] or 50,
            "pace_seconds": [0.01] * len(self.seconds(job["engine"], block)),
            "peak_bytes": 1000,
            "proof": {**MEASURED["proof"], "reference": job["reference_cell"], "steps": 25, "stretches": 6},
        }
        return WorkerResult(reply, 2.0, pyperf_json(self.tmp_path, self.seconds(job["engine"], block)))

    @property
    def measured(self):
        """(engine, block) of the measuring workers, in order."""
        return [(job["engine"], job["draw"] - 1) for job in self.jobs if job["task"] == "measure"]
