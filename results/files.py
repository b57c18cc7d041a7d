"""File access below a folder that a stranger may have filled.

Paths stay inside the folder, only regular files are read, and files are replaced atomically.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from zoomgrad.engines.files import sync_folder as sync_folder
from zoomgrad.engines.files import write_atomically as write_atomically
from zoomgrad.results.printable import printable

if TYPE_CHECKING:  # importing it takes longer than everything else that `zoomgrad list` does
    from pydantic import TypeAdapter, ValidationError

Stored = TypeVar("Stored")

MOST_BYTES = 16 * 2**20
"""Size limit for reading a stored file. The largest record has 20 kB, the largest profile a megabyte."""
MOST_CHARACTERS = 300
"""How much of a file's content an error quotes."""

_READ = os.O_RDONLY | os.O_NONBLOCK  # opening a FIFO without a writer would block


class Unreadable(Exception):
    """A stored file is missing or does not fit the schema. The text names the file, the field and the remedy."""


def inside(root: Path, *parts: str) -> Path:
    """Path of these parts below `root`.

    Raises Unreadable if a link on the way leads out of `root`, or if the path is neither a file nor a folder.
    `root` itself may be a link, because the user chose it.
    """
    path = root.joinpath(*parts)
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    if os.path.commonpath([real, real_root]) != real_root or real == real_root:
        raise Unreadable(
            f"{path}: leads out of {root}, to {real}\n"
            "  zoomgrad neither reads nor changes it. Remove the link, or ask the run's author for plain files."
        )
    try:
        kind = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        kind = stat.S_IFLNK
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise Unreadable(f"{path}: neither a file nor a folder\n  Remove it.")
    return path


def folder_inside(root: Path, *parts: str) -> Path:
    """As `inside`, for a folder that other programs write to: checks each of its entries as well."""
    folder = inside(root, *parts)
    for path in folder.iterdir() if folder.is_dir() else ():
        inside(root, *parts, path.name)
    return folder


def files_inside(root: Path, part: str) -> list[Path]:
    """JSON files of a folder, sorted by name, without drafts, whose names begin with a dot."""
    return [inside(root, part, path.name) for path in sorted((root / part).glob("[!.]*.json"))]


class NotAsWritten(Exception):
    """The path is not a regular file, or the file is too long. The text says which."""


def read_bytes(path: Path, most_bytes: int = MOST_BYTES, *, follow_links: bool = True) -> bytes:
    """Content of a regular file; never blocks on a FIFO. Raises OSError and NotAsWritten."""
    descriptor = os.open(path, _READ | (0 if follow_links else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotAsWritten("not a file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most_bytes + 1)
    finally:
        os.close(descriptor)
    if len(content) > most_bytes:
        raise NotAsWritten(f"longer than {most_bytes:,} bytes")
    return content


def read_content(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """As `read_bytes`, but raises Unreadable if the file is missing, not a regular file, or too large."""
    try:
        return read_bytes(path, most_bytes)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Unreadable(f"{path}: no such file\n  A run folder holds run.json and a folder of records.") from error
    except NotAsWritten as wrong:
        raise Unreadable(f"{path}: {wrong}\n  Remove it, then resume its run.") from wrong


MARKER = ".zoomgrad-run"
_FIRST_LINE = "zoomgrad run folder, version 1"


def mark(folder: Path, run_id: str) -> None:
    """Write a marker into a folder that was just made for that run. zoomgrad may remove files from a marked folder."""
    write_atomically(folder / MARKER, f"{_FIRST_LINE}\n{run_id}\n")


def is_marked(folder: Path) -> bool:
    """Whether zoomgrad made the folder. False for a link."""
    try:
        return not folder.is_symlink() and read_text(inside(folder, MARKER)).startswith(f"{_FIRST_LINE}\n")
    except (Unreadable, OSError):
        return False


def read_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """As `read_content`, decoded. Also raises Unreadable if the content is not UTF-8."""
    try:
        return read_content(path, most_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: not UTF-8 text\n  Remove it, then resume its run.") from error


def read(path: Path, model: type[Stored] | TypeAdapter[Stored]) -> Stored:
    """Read and validate one stored file. Raises Unreadable, naming the file and the field that is wrong."""
    from pydantic import TypeAdapter, ValidationError

    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    try:
        return adapter.validate_json(read_text(path))
    except ValidationError as error:
        raise Unreadable(
            f"{path}: {first_of(error)}\n"
            "  The file was edited, cut short, or written by another version of zoomgrad. "
            "Remove it and resume the run, or read it with the version that wrote it."
        ) from error


def first_of(error: ValidationError, *, whole: str = "the file as a whole") -> str:
    """The first invalid field, or `whole`, and the reason, each shortened because it may quote the file."""
    first = error.errors(include_url=False, include_context=False)[0]
    # A union's own part of the path is the status that chose the model.
    field = ".".join(str(part) for part in first["loc"] if part not in _STATUSES) or whole
    value = first["input"]
    shown = "" if value is None or isinstance(value, (dict, list, bytes)) else f", not {value!r}"
    return f"{_short(field)}: {_short(first['msg'] + shown)}"


_STATUSES = ("measured", "skipped", "failed")


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
