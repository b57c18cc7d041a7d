"""Jobs of workers, plain dictionaries; and the conversion of an exception to a reply."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, TypedDict

from zoomgrad import datasets, engines
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines import ChangedArithmetic, NonFiniteLoss, Unavailable
from zoomgrad.engines.files import write_atomically
from zoomgrad.engines.row import Row
from zoomgrad.harness.worker.lifeline import end_with_the_harness
from zoomgrad.harness.workloads import Workload

Reply = Mapping[str, Any]
"""`status` is `measured`, `skipped` or `failed`, then with `reason` and `remedy`. The harness validates the other keys:
`harness/run/replies.py`."""


class BaseJob(TypedDict):
    """What every job has. Paths are absolute."""

    engine: str
    workload: str


class Job(BaseJob):
    """Job of a measuring worker."""

    reference_folder: str
    """Evidence of the engine that vouches for this one."""
    reference_cell: str
    reference_steps: int
    """Steps of the longest stretch that was vouched for."""
    reference_drills: list[str]
    """Drills that were vouched for."""
    warmups: int
    values: int
    value_seconds: float
    """A timed value fills this time with whole stretches."""
    offset_steps: int
    """Steps between calibration and warm-up, different in every block."""
    stretch_steps: int
    """0 in the first block, where the worker calibrates it; later blocks repeat the first block's number."""
    steps_per_value: int
    """Also 0 in the first block; a multiple of stretch_steps."""


class VouchJob(BaseJob):
    """Job of an engine that vouches for others."""

    witnesses: dict[str, str]
    """Cells that vouch for this engine, and the folders of their evidence."""
    folder: str
    """Folder for this engine's evidence."""
    seconds: float
    """Approximate time limit for the stretches of all starts, and for each drill after the first."""
    steps: int
    """Most steps of a stretch."""
    starts: int
    """Starts other than the workload's own, for the stretches of so many timed values; 0 for an engine that only
    confirms another one's evidence."""


class ProfileJob(BaseJob):
    """Job of a worker under a profiler."""

    profiler: str
    seconds: float
    """Approximate duration."""


class Mismatch(Exception):
    """An engine's numbers differ from the reference's. The message says by how much, and where first."""


class DamagedEvidence(Exception):
    """Evidence was changed. The message says where, what is wrong, and what to do."""


def ready(name: str, workload: Workload) -> Row:
    """Load the engine of that name and the workload's data, both of which work here.

    Raises UnknownName, and Unavailable for the engine or the data, or if the engine can't run the workload.
    """
    engine = engines.load(name)
    engine.check()
    workload.data()
    refusal = engine.supports(workload)
    if refusal:
        raise Unavailable(refusal, "Choose another engine from `zoomgrad list`.")
    return engine


def do_job(work: Callable[[Any], Reply]) -> None:
    """Run a worker from start to exit: do the job that the first argument names and write its reply."""
    end_with_the_harness()
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if not run_job(job["reply_file"], lambda: work(job)):
        sys.exit(1)


def run_job(reply_file: str, work: Callable[[], Reply]) -> bool:
    """Do the work and write its reply, or the reason for a failure. Return whether it was measured."""
    try:
        reply = work()
    except (Unavailable, datasets.Unavailable) as missing:
        reply = {"status": "skipped", "reason": missing.reason, "remedy": missing.remedy}
    except (NonFiniteLoss, CorruptData, ChangedArithmetic, Mismatch, DamagedEvidence) as error:
        reason, _, remedy = str(error).partition("\n  ")
        reply = {"status": "failed", "reason": reason, "remedy": remedy}
    except MemoryError:
        # The harness adds the limit and the remedy.
        reply = {"status": "failed", "reason": "out of memory", "limit": "memory"}
    except Exception as error:  # every failure of a worker becomes a record
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{Path(where.filename).name}:{where.lineno}"
        reply = {"status": "failed", "reason": f"{type(error).__name__}: {error} ({at})"}
    # Atomically, because the harness treats any file there as complete.
    write_atomically(reply_file, json.dumps(reply), durable=False)
    return bool(reply["status"] == "measured")
