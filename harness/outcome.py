"""What a worker wrote -> an outcome that can be believed in form: known fields, right types, finite figures in range.

A worker runs an engine, and an engine is anybody's code. Its files are read here and nowhere else. What does not fit
becomes the outcome of a failed worker, which names the field.
"""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Annotated, Any, Literal

import pyperf
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from results.fields import Bytes, Count, OneLine, Seconds, Share, Text

MOST_BYTES = 16 << 20
"""Of a file that a worker leaves; the largest real ones have some 10 KB."""

REMEDY = "Mend the engine."


class WrongOutcome(Exception):
    """A worker's file that is not what it should be: which, and how."""


Positive = Annotated[int, Field(ge=1, le=2**53)]


class _Told(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    status: Literal["measured"]


class _Proof(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    reference: OneLine
    steps: Positive
    stretches: Positive
    seconds: Seconds
    identical: bool
    worst_error: Annotated[float, Field(ge=0)]


class Measured(_Told):
    """Of a worker that measured; the fields of `harness.worker.job.Outcome`."""

    phases: dict[OneLine, Seconds]
    stretch_steps: Positive
    steps_per_value: Positive
    pace_seconds: list[Annotated[float, Field(gt=0)]]
    peak_bytes: Bytes
    peak_compiler_bytes: Bytes
    tape_rows: Count = 0
    source_bytes: Bytes = 0
    object_bytes: Bytes = 0
    translation_units: Count = 0
    parallel_compilers: Count = 0
    vector_doubles: Count = 0
    compiler: OneLine = ""
    compiler_flags: list[OneLine] = []
    looped_share: Share = 0.0
    losses: list[tuple[Count, float]]
    parameters_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    proof: _Proof


class Vouched(_Told):
    """Of a worker that vouches; the fields of `VouchOutcome`."""

    drills: list[OneLine]
    steps: Positive


class Profiled(_Told):
    """Of a worker that was looked at; the fields of `ProfileOutcome`."""

    steps: Positive
    seconds: Seconds
    preparations: Count
    step_seconds: list[Seconds]
    pid: Positive
    watched: dict[str, Any]


class Counted(_Told):
    """Of a worker whose instructions were counted; the fields of `CountOutcome`."""

    steps: Positive
    counts: Annotated[list[Seconds], Field(min_length=2, max_length=2)]
    compiler: OneLine
    flags: list[OneLine]


class NoResult(BaseModel):
    """Of a worker that says why it has no result."""

    model_config = ConfigDict(strict=True)

    status: Literal["skipped", "failed"]
    reason: Annotated[Text, Field(min_length=1)]
    remedy: Text = ""
    disagrees: bool = False
    """Of a worker that vouches: it failed because its numbers differ from a witness's."""
    limit: Literal["", "memory"] = ""


MODELS = {
    "measure": TypeAdapter[Any](Annotated[Measured | NoResult, Field(discriminator="status")]),
    "vouch": TypeAdapter[Any](Annotated[Vouched | NoResult, Field(discriminator="status")]),
    "profile": TypeAdapter[Any](Annotated[Profiled | NoResult, Field(discriminator="status")]),
    "count": TypeAdapter[Any](Annotated[Counted | NoResult, Field(discriminator="status")]),
}
"""By task, which is the name of the worker's module."""


def read_outcome(file: Path, task: str) -> dict[str, Any] | None:
    """The outcome in that file; None where there is no file. Raises WrongOutcome, which names the field."""
    content = read_bounded(file)
    if content is None:
        return None
    try:
        outcome = MODELS[task].validate_json(content)
    except ValidationError as error:
        raise WrongOutcome(f"its outcome is wrong: {first_error(error)}") from None
    told: dict[str, Any] = outcome.model_dump(exclude_unset=True)
    return told


def first_error(error: ValidationError) -> str:
    """The first field that is wrong, what it should be, and what it is, in one line."""
    first = error.errors(include_url=False)[0]
    statuses = {"measured", "skipped", "failed"}
    field = ".".join(str(part) for part in first["loc"] if part not in statuses) or "the file as a whole"
    given = "" if isinstance(first.get("input"), (dict, list, bytes)) else f", not {str(first.get('input'))[:80]!r}"
    return f"{field}: {first['msg'][:200]}{given}"


def read_bounded(file: Path) -> bytes | None:
    """A regular file's content; None where there is none. Raises WrongOutcome for anything else, or for too much."""
    try:
        # An engine may have put a FIFO or a link in its place: neither is waited for or followed.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongOutcome(f"its {file.name} can't be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WrongOutcome(f"its {file.name} is not a file")
    with open(descriptor, "rb") as opened:  # noqa: PTH123  (a descriptor)
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise WrongOutcome(f"its {file.name} has more than {MOST_BYTES >> 20} MiB")
    return content


def check_times(content: bytes, values: int) -> None:
    """Raise WrongOutcome unless that is pyperf's file with so many finite times, or with one time of a slow step."""
    try:
        benchmark = read_times(content)
        found = benchmark.get_values()
        warmups = [seconds for run in benchmark.get_runs() for _, seconds in run.warmups]
    except Exception as error:  # what pyperf raises for a file that it did not write has many types
        raise WrongOutcome(f"pyperf can't read the times: {type(error).__name__}: {str(error)[:200]}") from None
    if len(found) not in (1, values):
        raise WrongOutcome(f"pyperf's file has {len(found)} times instead of {values}")
    for seconds in (*found, *warmups):
        if not (math.isfinite(seconds) and seconds > 0.0):
            raise WrongOutcome(f"a time is {seconds!r} s")


def read_times(content: bytes) -> Any:
    """The one benchmark of pyperf's file. Raises what pyperf raises, of many types."""
    return pyperf.Benchmark.loads(content.decode("utf-8"))
