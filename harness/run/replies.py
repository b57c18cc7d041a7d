"""Worker's files -> a validated reply, or the fault.

A worker runs an engine, which may be anybody's code, so only this module reads its files. The figures of a cell are
validated by the class that also stores them, `results.record.Figures`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from zoomgrad.harness.machine.interpreters import remedy
from zoomgrad.results.fields import OneLine, Text
from zoomgrad.results.files import NotAsWritten, first_of, read_bytes
from zoomgrad.results.record import Cell, Figures, Model

REMEDY = "Fix the engine."


class NoResult(Exception):
    """A cell has no result or profile, or an engine can't vouch. Holds a record's status, reason, remedy and limit."""

    def __init__(
        self, status: str, reason: str, remedy: str = "", limit: str = "", disagrees: bool = False, seconds: float = 0.0
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
        self.why = {"status": status, "reason": reason, "remedy": remedy}
        self.limit = limit
        self.disagrees = disagrees
        self.seconds = seconds
        """Wall time of the worker."""


def no_interpreter(cell: Cell) -> NoResult:
    """The NoResult of a cell whose interpreter is missing."""
    return NoResult("skipped", f"{cell.interpreter} is not on this machine", remedy(cell.interpreter))


class WrongReply(Exception):
    """A worker's file is missing or invalid. The text names the file or field and the fault."""


Positive = Annotated[int, Field(ge=1, le=2**53)]


class Measured(Figures):
    """Reply of a measuring worker."""

    status: Literal["measured"]


class Vouched(Model):
    """Reply of a vouching worker."""

    status: Literal["measured"]
    drills: tuple[OneLine, ...]
    steps: Positive
    """Steps of the longest stretch."""


class Profiled(Model):
    """Reply of a profiled worker."""

    status: Literal["measured"]
    fields: dict[str, Any]
    """Fields of the profile, which are validated with it."""


class Absent(Model):
    """Reply of a worker without a result, with the reason."""

    status: Literal["skipped", "failed"]
    reason: Annotated[Text, Field(min_length=1)]
    remedy: Text = ""
    disagrees: bool = False
    """Whether a vouching worker failed because its numbers differ from a witness's."""
    limit: Literal["", "memory"] = ""


REPLIES: dict[str, TypeAdapter[Any]] = {
    "measure": TypeAdapter(Annotated[Measured | Absent, Field(discriminator="status")]),
    "vouch": TypeAdapter(Annotated[Vouched | Absent, Field(discriminator="status")]),
    "profile": TypeAdapter(Annotated[Profiled | Absent, Field(discriminator="status")]),
}
"""Task (the name of the worker's module) -> its reply."""


def read_reply(file: Path, task: str) -> dict[str, Any] | None:
    """Read and validate the reply; None if there is no file. Raises WrongReply, which names the field."""
    content = read_bounded(file)
    if content is None:
        return None
    try:
        reply: dict[str, Any] = REPLIES[task].validate_json(content, strict=True).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise WrongReply(f"its reply is invalid: {first_of(error)}") from None
    return reply


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


def times_of(file: Path, values: int, output: str) -> bytes:
    """Content of the file that pyperf wrote: `values` times, or one time of a slow step. A record checks the times.

    output: of the worker, for a file that is missing. Raises WrongReply.
    """
    content = read_bounded(file)
    if content is None:
        raise WrongReply(f"pyperf wrote no result: {output or 'no output'}")
    try:
        count = read_times(content).get_nvalue()
    except Exception as error:  # pyperf raises errors of many types for a file that it did not write
        raise WrongReply(f"pyperf can't read the times: {type(error).__name__}: {str(error)[:200]}") from None
    if count not in (1, values):
        raise WrongReply(f"pyperf's file has {count} times instead of {values}")
    return content


def read_times(content: bytes) -> Any:
    """Read the single benchmark of pyperf's file. Raises any of pyperf's errors, which have many types."""
    import pyperf  # most commands read no times

    return pyperf.Benchmark.loads(content.decode("utf-8"))
