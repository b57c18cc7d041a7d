"""The plain dictionaries between the harness and its workers, and how an exception becomes an outcome."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, Optional, TypedDict

import datasets
import engines
from datasets.idx import CorruptData
from engines import ChangedArithmetic, Engine, NonFiniteLoss, Unavailable
from harness import workloads
from harness.worker.figures import Misbehaved, refusal
from harness.worker.lifeline import end_with_the_harness
from harness.workloads import Workload


class Job(TypedDict):
    """What a measuring worker is to do. Paths are absolute."""

    engine: str
    workload: str
    interpreter: str
    reference_folder: str
    """Evidence of the engine that vouches for this one."""
    reference_cell: str
    reference_steps: int
    """Of the longest stretch that was vouched for."""
    reference_drills: list[str]
    """Drills that were."""
    outcome_file: str
    warmups: int
    values: int
    value_seconds: float
    """A timed value fills this time with whole stretches."""
    offset_steps: int
    """Steps between calibration and warm-up, another number in every block."""
    objects: str
    """The cell's private folder, for an object that was slow to compile."""
    stretch_steps: int
    """0: the worker finds out; later blocks of a cell repeat what its first one found."""
    steps_per_value: int
    """The same: a multiple of stretch_steps."""


class VouchJob(TypedDict):
    """What an engine does that vouches for others. Paths are absolute."""

    engine: str
    workload: str
    outcome_file: str
    witnesses: dict[str, str]
    """Cells that vouch for this engine, and where their evidence lies."""
    folder: str
    """For its own evidence."""
    seconds: float
    """About how long its stretches may take, and at most how long its drills."""
    steps: int
    """And how long its longest stretch may be."""


class VouchOutcome(TypedDict, total=False):
    """What came of it; `status` and the reason are an Outcome's."""

    status: str
    reason: str
    remedy: str
    disagrees: bool
    """Whether it failed because its numbers differ from a witness's."""
    drills: list[str]
    steps: int
    """Of its longest stretch."""


class Mismatch(Exception):
    """An engine gave other numbers than the reference: by how much, and where first."""


class DamagedEvidence(Exception):
    """Evidence that is not what was written: where, what is wrong, and what to do."""


def ready(engine_name: str, workload_name: str) -> tuple[Engine, Workload, Optional[str]]:
    """Both, the engine able to run here and the data there; and why the one can't run the other, where it can't.

    Raises UnknownName, Unavailable of the engine or of the data, and Misbehaved.
    """
    engine = engines.load(engine_name)
    engine.check()
    workload = workloads.load(workload_name)
    workload.data()
    return engine, workload, refusal(engine, workload)


class Outcome(TypedDict, total=False):
    """What a worker found. `status` is `measured`, `skipped` or `failed`; the other keys are Record's.

    `harness/outcome.py` has the types and ranges that the harness insists on.
    """

    status: str
    reason: str
    remedy: str
    limit: str
    """`memory` where that ran out."""
    phases: dict[str, float]
    stretch_steps: int
    steps_per_value: int
    pace_seconds: list[float]
    peak_bytes: int
    peak_compiler_bytes: int
    tape_rows: int
    source_bytes: int
    object_bytes: int
    translation_units: int
    parallel_compilers: int
    vector_doubles: int
    compiler: str
    compiler_flags: list[str]
    looped_share: float
    losses: list[tuple[int, float]]
    parameters_sha256: str
    proof: dict[str, Any]


class ProfileJob(TypedDict):
    """What a worker does while a profiler looks. Paths are absolute."""

    engine: str
    workload: str
    outcome_file: str
    watch: str
    """What the worker itself looks at: a key of `profile.WATCHES`."""
    seconds: float
    """About how long."""
    folder: str
    """For files that a watch leaves."""


class ProfileOutcome(TypedDict, total=False):
    """What was done meanwhile; `status` and the reason are an Outcome's."""

    status: str
    reason: str
    remedy: str
    steps: int
    seconds: float
    preparations: int
    step_seconds: list[float]
    """Thinned, in order; the first is that of the very first step."""
    pid: int
    watched: dict[str, Any]


class CountJob(TypedDict):
    """What a worker has counted. Paths are absolute."""

    engine: str
    workload: str
    outcome_file: str
    counter: str
    """A key of `count.COUNTERS`."""
    target: str
    """The machine to compile for; empty for the one that this is."""
    steps: int
    """About how many are counted."""
    dump: str
    """Where callgrind writes, before it appends numbers."""


class CountOutcome(TypedDict, total=False):
    """What was counted; `status` and the reason are an Outcome's."""

    status: str
    reason: str
    remedy: str
    steps: int
    """By which the second portion is longer than the first."""
    counts: list[float]
    """Instructions of each portion."""
    compiler: str
    flags: list[str]


def read_json(path: str) -> Any:
    """What the harness wrote there."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def read_job(path: str) -> Job:
    """The job of a measuring worker."""
    job: Job = read_json(path)
    return job


def write_json(path: str, value: Any) -> None:
    """Write whole or not at all: the harness takes a file that is there for a finished one."""
    draft = f"{path}.draft"
    Path(draft).write_text(json.dumps(value), encoding="utf-8")
    Path(draft).replace(path)


def thin(points: Sequence[Any], most: int) -> Sequence[Any]:
    """At most `most` of the points, evenly spaced, the first and the last among them."""
    if len(points) <= most:
        return points
    return [points[round(index * (len(points) - 1) / (most - 1))] for index in range(most)]


def do_job(work: Callable[[Any], Mapping[str, Any]]) -> None:
    """A worker's whole life: the job that the first argument names, its outcome, an exit code."""
    end_with_the_harness()
    job = read_json(sys.argv[1])
    if not run_job(job["outcome_file"], lambda: work(job)):
        sys.exit(1)


def run_job(outcome_file: str, work: Callable[[], Mapping[str, Any]]) -> bool:
    """Do the work, write its outcome or the reason why there is none, and tell whether there is one."""
    outcome: Mapping[str, Any]
    try:
        outcome = work()
    except (Unavailable, datasets.Unavailable) as missing:
        outcome = {"status": "skipped", "reason": missing.reason, "remedy": missing.remedy}
    except (NonFiniteLoss, CorruptData, ChangedArithmetic, Mismatch, Misbehaved, DamagedEvidence) as error:
        reason, _, remedy = str(error).partition("\n  ")
        outcome = {"status": "failed", "reason": reason, "remedy": remedy}
    except MemoryError:
        # The harness knows the limit, and how to raise it.
        outcome = {"status": "failed", "reason": "out of memory", "limit": "memory"}
    except Exception as error:  # a worker's failure is a record, whatever it is
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{Path(where.filename).name}:{where.lineno}"
        outcome = {"status": "failed", "reason": f"{type(error).__name__}: {error} ({at})"}
    write_json(outcome_file, outcome)
    return bool(outcome["status"] == "measured")
