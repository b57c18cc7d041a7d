"""Parameters in a file: names, shapes, numbers, and settings as text. Nothing in such a file can run.

The format is that of safetensors, restricted to doubles, so the library of that name reads these files too:

    8 bytes, little-endian        length of the header
    the header, JSON              {"__metadata__": {…}, NAME: {"dtype": "F64", "shape": […], "data_offsets": [a, b]}, …}
    the numbers                   little-endian doubles, row by row, tensor by tensor

The metadata are texts. One of them marks the file as ours. `save_parameters` replaces only marked files, unless it is
asked to overwrite others. Every length is checked against the file's size before anything is read, and nothing is
compressed, so loading takes as much memory as the file has bytes.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import sys
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from engines.arguments import whole

MARK, VERSION = "zoomgrad", "parameters, version 1"
MOST_HEADER_BYTES = 1 << 22
MOST_BYTES = 1 << 30
"""Largest file: 134 million doubles. Without a limit, a sparse file could claim more than the memory holds."""
MOST_DIMENSIONS = 16

FilePath = Union[str, Path]


class BadFile(ValueError):
    """A file does not hold what it should, or must not be replaced. The text names the file, the reason, the remedy."""

    def __init__(self, path: FilePath, reason: str, remedy: str) -> None:
        super().__init__(f"{path}: {reason}\n  {remedy}")
        self.reason = reason


class Saved(NamedTuple):
    """What a file of parameters holds."""

    parameters: array[float]
    """All numbers, in the order of the tensors in the file."""
    shapes: dict[str, tuple[int, ...]]
    """Tensor -> its shape, in order. A shape's product is its count of numbers."""
    settings: dict[str, str]
    """What the writer noted about the model. Empty in a file that zoomgrad did not write."""


def save_parameters(
    path: FilePath,
    parameters: Sequence[float],
    *,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    settings: Optional[Mapping[str, str]] = None,
    overwrite: bool = False,
) -> None:
    """Write the numbers to the file, atomically.

    shapes: name -> shape of each tensor, in the order of the numbers; by default, one tensor `parameters`. settings:
    texts about the model, for whoever loads it. A file that this function wrote is replaced. Any other file raises
    BadFile, or with `overwrite` is replaced if it is a regular file. Raises ValueError for shapes that don't fit the
    numbers, TypeError for settings that are not texts, and OSError.
    """
    numbers = array("d", parameters)
    header = _header(len(numbers), {"parameters": (len(numbers),)} if shapes is None else shapes, settings or {})
    if sys.byteorder == "big":
        numbers.byteswap()
    _write(path, (len(header).to_bytes(8, "little"), header, numbers.tobytes()), overwrite)


def load_parameters(path: FilePath, *, count: Optional[int] = None) -> Saved:
    """Read a file that `save_parameters` wrote, or another safetensors file of doubles.

    count: how many numbers it must hold. Raises BadFile for any other content, and OSError.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            shapes, settings, start = _read_header(file, size)
        except _Wrong as wrong:
            raise BadFile(path, f"not a file of parameters: {wrong}", _REMEDY) from None
        held = (size - start) // 8
        if count is not None and held != count:
            raise BadFile(path, f"it holds {held:,} parameters, not {count:,}", "Name a file of the same model.")
        numbers = array("d", bytes(8)) * held
        got = file.readinto(memoryview(numbers).cast("B")) if held else 0
    if got != 8 * held:
        raise BadFile(path, "it was cut while it was read", "Load it again.")
    settings.pop(MARK, None)
    if sys.byteorder == "big":
        numbers.byteswap()
    return Saved(numbers, shapes, settings)


_REMEDY = "Name a file that zoomgrad saved, or a safetensors file of doubles (F64)."


def check_destination(path: FilePath, *, overwrite: bool = False) -> None:
    """Raise BadFile if the folder takes no file, or if `save_parameters` would not replace what is there."""
    if not isinstance(path, (str, Path)):
        raise TypeError(f"a file's path must be a text or a Path, not {path!r}\n  Write `os.fsdecode(…)`.")
    file = Path(path)
    if "\0" in str(path):
        raise BadFile(repr(str(path)), "a file's name can't hold a null character", "Name another file.")
    if not file.parent.is_dir():
        raise BadFile(path, "its folder does not exist", "Make the folder, or name another file.")
    if not os.access(file.parent, os.W_OK):
        raise BadFile(path, "its folder can't be written to", "Name a file in another folder.")
    try:
        facts = file.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(facts.st_mode):
        raise BadFile(path, "not a regular file, so it is not replaced", "Name another file.")
    if not overwrite and not _is_ours(path):
        raise BadFile(
            path,
            "it exists, and zoomgrad did not save it, so it is not replaced",
            "Name another file, or ask for it: `--force` on the command line, `overwrite=True` in Python.",
        )


def _is_ours(path: FilePath) -> bool:
    try:
        with _opened(path) as file:
            return MARK in _read_header(file, os.fstat(file.fileno()).st_size)[1]
    except (BadFile, _Wrong, OSError):
        return False


class _Wrong(Exception):
    """What is wrong with a header."""


def _opened(path: FilePath) -> Any:
    """The regular file, opened without blocking on a FIFO. Raises BadFile for anything else, and OSError."""
    if "\0" in str(path):
        raise BadFile(repr(str(path)), "a file's name can't hold a null character", "Name another file.")
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadFile(path, "not a regular file", _REMEDY)
    return os.fdopen(descriptor, "rb")


def _header(count: int, shapes: Mapping[str, Sequence[int]], settings: Mapping[str, str]) -> bytes:
    tensors: dict[str, Any] = {"__metadata__": {MARK: VERSION}}
    for name, text in settings.items():
        if not all(isinstance(part, str) for part in (name, text)):
            raise TypeError(f"a setting must be a text, not {name!r}: {text!r}\n  Write `str(…)` or `json.dumps(…)`.")
        if name == MARK:
            raise ValueError(f"{MARK!r} is the file's own mark, so it can't be a setting\n  Choose another name.")
        tensors["__metadata__"][name] = text
    end = 0
    for name, given in shapes.items():
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name must be a text, not {name!r}\n  Write `str(…)`.")
        shape = [whole(size, f"a size of {name!r}", 0) for size in given]
        if name in ("", "__metadata__") or len(shape) > MOST_DIMENSIONS or max(shape, default=0) > MOST_BYTES:
            raise ValueError(
                f"{name!r} with the shape {shape} can't be a tensor\n"
                f"  Give it a name, and at most {MOST_DIMENSIONS} sizes of at most {MOST_BYTES:,}."
            )
        start, end = end, end + 8 * math.prod(shape)
        tensors[name] = {"dtype": "F64", "shape": shape, "data_offsets": [start, end]}
    if end != 8 * count:
        raise ValueError(
            f"the shapes hold {end // 8:,} numbers, and there are {count:,} parameters\n"
            "  Give the shapes of all parameters, in their order."
        )
    header = json.dumps(tensors, separators=(",", ":")).encode("ascii")
    header += b" " * (-len(header) % 8)  # so that a reader can map the numbers
    if len(header) > MOST_HEADER_BYTES or 8 + len(header) + end > MOST_BYTES:
        raise ValueError(
            f"names and settings take {len(header):,} bytes, and numbers {end:,}; the limits are {MOST_HEADER_BYTES:,} "
            f"and {MOST_BYTES:,} in all\n  Save parts of the model in files of their own."
        )
    return header


def _read_header(file: Any, size: int) -> tuple[dict[str, tuple[int, ...]], dict[str, str], int]:
    """Tensors with their shapes in the order of the numbers, the metadata, and where the numbers start. Raises _Wrong.

    size: the file's, of which every number is part of one tensor.
    """
    length = int.from_bytes(file.read(8), "little")
    start = 8 + length
    if not 10 <= start <= min(8 + MOST_HEADER_BYTES, size):
        raise _Wrong("it has no header")
    if size > MOST_BYTES:
        raise _Wrong(f"it has {size:,} bytes; the limit is {MOST_BYTES:,}")
    try:
        # A number of a million digits takes long to convert.
        header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_unique, parse_int=_short_int)
        metadata = header.pop("__metadata__", {})
        tensors = sorted((_tensor(name, facts) for name, facts in header.items()), key=lambda tensor: tensor[:2])
        texts = all(isinstance(text, str) for text in metadata.values())
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise _Wrong("its header is not valid, or has a tensor of another type than F64") from None
    if not texts or metadata.get(MARK, VERSION) != VERSION:
        raise _Wrong("its metadata are not known to this version")
    ends = [0, *(end for _, end, _, _ in tensors)]
    if [begin for begin, _, _, _ in tensors] != ends[:-1] or ends[-1] != size - start:
        raise _Wrong("its tensors overlap, leave a gap, or end elsewhere than the file")
    return {name: shape for _, _, name, shape in tensors}, metadata, start


def _tensor(name: str, facts: Any) -> tuple[int, int, str, tuple[int, ...]]:
    """Where a tensor begins and ends, its name and shape. Raises ValueError, TypeError and LookupError."""
    shape, (begin, end) = facts["shape"], facts["data_offsets"]
    if facts["dtype"] != "F64" or type(shape) is not list or len(shape) > MOST_DIMENSIONS:
        raise ValueError
    if any(type(number) is not int or number < 0 for number in (begin, end, *shape)):
        raise ValueError
    if begin + 8 * math.prod(shape) != end:
        raise ValueError
    return begin, end, name, tuple(shape)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _short_int(text: str) -> int:
    if len(text) > 19:
        raise ValueError("a number is too long")
    return int(text)


def _write(path: FilePath, parts: Sequence[bytes], overwrite: bool) -> None:
    """Create the file, or replace it if that is allowed, atomically. It is on the disk when this returns."""
    check_destination(path, overwrite=overwrite)
    file = Path(path)
    draft = file.with_name(f".{os.urandom(8).hex()}.draft")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, 0o666), "wb") as stream:
            with contextlib.suppress(FileNotFoundError):
                draft.chmod(stat.S_IMODE(file.lstat().st_mode))
            for part in parts:
                stream.write(part)
            stream.flush()
            os.fsync(stream.fileno())
        _put(draft, file, overwrite)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _put(draft: Path, file: Path, overwrite: bool) -> None:
    """Give the draft the file's name, unless somebody has made another file of that name since."""
    check_destination(file, overwrite=overwrite)
    if not os.path.lexists(file):
        with contextlib.suppress(OSError, NotImplementedError, AttributeError):  # some file systems have no links
            os.link(draft, file)  # fails if there is a file by now
            draft.unlink()
            return
        check_destination(file, overwrite=overwrite)
    draft.replace(file)
