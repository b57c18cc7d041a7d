"""Worker's files -> a validated reply: known fields, right types, finite figures in range.

A worker runs an engine, which may be anybody's code, so only this module reads its files. Anything invalid becomes the
reply of a failed worker, which names the field.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from zoomgrad.results.fields import Bytes, Count, OneLine, Seconds, Share, Text
from zoomgrad.results.files import NotAsWritten, read_bytes

REMEDY = "Fix the engine."


class WrongReply(Exception):
    """A worker's file is missing or invalid. The text names the file or field and the fault."""


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
    """Reply of a measuring worker, with the fields of `harness.worker.job.MeasureReply`."""

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
    threads: Count = 0
    compiler: OneLine = ""
    compiler_flags: list[OneLine] = []
    looped_share: Share = 0.0
    losses: list[tuple[Count, float]]
    parameters_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    proof: _Proof


class Vouched(_Told):
    """Reply of a vouching worker, with the fields of `VouchReply`."""

    drills: list[OneLine]
    steps: Positive


class Ready(_Told):
    """Reply of a worker that took one step, with the fields of `ReadyReply`."""

    at_seconds: Seconds
    cpu_seconds: Seconds


class Profiled(_Told):
    """Reply of a profiled worker, with the fields of `ProfileReply`."""

    steps: Positive
    seconds: Seconds
    preparations: Count
    step_seconds: list[Seconds]
    pid: Positive
    readings: dict[str, Any]


class NoResult(BaseModel):
    """Reply of a worker without a result, with the reason."""

    model_config = ConfigDict(strict=True)

    status: Literal["skipped", "failed"]
    reason: Annotated[Text, Field(min_length=1)]
    remedy: Text = ""
    disagrees: bool = False
    """Whether a vouching worker failed because its numbers differ from a witness's."""
    limit: Literal["", "memory"] = ""


MODELS = {
    "measure": TypeAdapter[Any](Annotated[Measured | NoResult, Field(discriminator="status")]),
    "vouch": TypeAdapter[Any](Annotated[Vouched | NoResult, Field(discriminator="status")]),
    "ready": TypeAdapter[Any](Annotated[Ready | NoResult, Field(discriminator="status")]),
    "profile": TypeAdapter[Any](Annotated[Profiled | NoResult, Field(discriminator="status")]),
}
"""Task (the name of the worker's module) -> model of its reply."""


def read_reply(file: Path, task: str) -> dict[str, Any] | None:
    """Read and validate the reply; None if there is no file. Raises WrongReply, which names the field."""
    content = read_bounded(file)
    if content is None:
        return None
    try:
        reply = MODELS[task].validate_json(content)
    except ValidationError as error:
        raise WrongReply(f"its reply is invalid: {first_error(error)}") from None
    told: dict[str, Any] = reply.model_dump(exclude_unset=True)
    return told


def first_error(error: ValidationError) -> str:
    """One line: the first invalid field, what it should be, and what it is."""
    first = error.errors(include_url=False)[0]
    statuses = {"measured", "skipped", "failed"}
    field = ".".join(str(part) for part in first["loc"] if part not in statuses) or "the file as a whole"
    given = "" if isinstance(first.get("input"), (dict, list, bytes)) else f", not {str(first.get('input'))[:80]!r}"
    return f"{field}: {first['msg'][:200]}{given}"


def read_bounded(file: Path) -> bytes | None:
    """Content of a regular file; None if it does not exist. Raises WrongReply for other kinds and for large files."""
    try:
        # An engine may have replaced the file by a FIFO or a link: do not block, and do not follow.
        return read_bytes(file, follow_links=False)
    except FileNotFoundError:
        return None
    except NotAsWritten as wrong:
        raise WrongReply(f"its {file.name} is {wrong}") from None
    except OSError as error:
        raise WrongReply(f"its {file.name} can't be read: {error.strerror}") from None


def check_times(content: bytes, values: int) -> None:
    """Raise WrongReply unless pyperf wrote the file, with `values` finite times, or one time of a slow step."""
    try:
        benchmark = read_times(content)
        found = benchmark.get_values()
        warmups = [seconds for run in benchmark.get_runs() for _, seconds in run.warmups]
    except Exception as error:  # pyperf raises errors of many types for a file that it did not write
        raise WrongReply(f"pyperf can't read the times: {type(error).__name__}: {str(error)[:200]}") from None
    if len(found) not in (1, values):
        raise WrongReply(f"pyperf's file has {len(found)} times instead of {values}")
    for seconds in (*found, *warmups):
        if not (math.isfinite(seconds) and seconds > 0.0):
            raise WrongReply(f"a time is {seconds!r} s")


def read_times(content: bytes) -> Any:
    """Read the single benchmark of pyperf's file. Raises any of pyperf's errors, which have many types."""
    import pyperf  # most commands read no times

    return pyperf.Benchmark.loads(content.decode("utf-8"))
