"""Parameters in a file: names, shapes, numbers, and settings as text. Nothing in such a file can run.

The format is that of safetensors, restricted to doubles, so the library of that name reads these files too:

    8 bytes, little-endian        length of the header
    the header, JSON              {"__metadata__": {…}, NAME: {"dtype": "F64", "shape": […], "data_offsets": [a, b]}, …}
    the numbers                   little-endian doubles, row by row, tensor by tensor

The metadata are texts. Every length is checked against the file's size before anything is read, and nothing is
compressed, so loading takes as much memory as the file has bytes.
"""

from __future__ import annotations

import json
import math
import os
import stat
import sys
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from zoomgrad.engines.arguments import whole
from zoomgrad.engines.asking import one_line
from zoomgrad.engines.files import write_atomically

MOST_HEADER_BYTES = 1 << 22
MOST_BYTES = 1 << 30
"""Largest file: 134 million doubles. Without a limit, a sparse file could claim more than the memory holds."""

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
    """What the writer noted about the model."""


def save_parameters(
    path: FilePath,
    parameters: Sequence[float],
    *,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    settings: Optional[Mapping[str, str]] = None,
) -> None:
    """Write the numbers to the file, atomically.

    shapes: name -> shape of each tensor, in the order of the numbers; by default, one tensor `parameters`. settings:
    texts about the model, for whoever loads it. Replaces a regular file, and raises BadFile for a link or a device.
    Raises ValueError for shapes that don't fit the numbers, TypeError for settings that are not texts, and OSError.
    """
    numbers = array("d", parameters)
    header = _header(len(numbers), {"parameters": (len(numbers),)} if shapes is None else shapes, settings or {})
    if sys.byteorder == "big":
        numbers.byteswap()
    mode = 0o666
    if os.path.lexists(path):
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):
            raise BadFile(path, "not a regular file, so it is not replaced", "Name another file.")
    write_atomically(path, len(header).to_bytes(8, "little"), header, numbers.tobytes(), mode=stat.S_IMODE(mode))


def load_parameters(path: FilePath, *, count: Optional[int] = None) -> Saved:
    """Read a file that `save_parameters` wrote, or another safetensors file of doubles.

    count: how many numbers it must hold. Raises BadFile for any other content, and OSError.
    """
    numbers = array("d")
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        shapes, settings, start = _read_header(path, file, size)
        held = (size - start) // 8
        if count is not None and held != count:
            raise BadFile(path, f"it holds {held:,} parameters, not {count:,}", "Name a file of the same model.")
        numbers.frombytes(file.read(8 * held))
    if len(numbers) != held:
        raise BadFile(path, "it was cut while it was read", "Load it again.")
    if sys.byteorder == "big":
        numbers.byteswap()
    return Saved(numbers, shapes, settings)


def _opened(path: FilePath) -> Any:
    """The regular file, opened without blocking on a FIFO. Raises BadFile for anything else, and OSError."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = open(os.open(path, flags), "rb")  # noqa: PTH123, SIM115  (a descriptor, which the caller closes)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise BadFile(path, "not a regular file", _REMEDY)
    return file


_REMEDY = "Name a file that zoomgrad saved, or a safetensors file of doubles (F64)."


def _header(count: int, shapes: Mapping[str, Sequence[int]], settings: Mapping[str, str]) -> bytes:
    if not all(isinstance(text, str) for setting in settings.items() for text in setting):
        raise TypeError(f"a setting must be a text, unlike one of {settings!r}\n  Write `str(…)` or `json.dumps(…)`.")
    if "__metadata__" in shapes:
        raise ValueError("'__metadata__' can't be a tensor\n  Choose another name.")
    tensors: dict[str, Any] = {"__metadata__": settings}
    end = 0
    for name, sizes in shapes.items():
        shape = [whole(size, f"a size of {name!r}", 0) for size in sizes]
        start, end = end, end + 8 * math.prod(shape)
        tensors[str(name)] = {"dtype": "F64", "shape": shape, "data_offsets": [start, end]}
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


def _read_header(path: FilePath, file: Any, size: int) -> tuple[dict[str, tuple[int, ...]], dict[str, str], int]:
    """Tensors with their shapes in the order of the numbers, the metadata, and where the numbers start.

    size: the file's, of which every number is part of one tensor. Raises BadFile.
    """
    length = int.from_bytes(file.read(8), "little")
    start, end, shapes = 8 + length, 0, {}
    try:
        if not 10 <= start <= min(8 + MOST_HEADER_BYTES, size) or size > MOST_BYTES:
            raise ValueError(f"it has no header, or more than {MOST_BYTES:,} bytes, which is the limit")
        # A number of a million digits takes long to convert, and none of 20 digits fits.
        header = json.loads(file.read(length).decode("utf-8"), parse_int=lambda text: int(text[:20]))
        metadata = header.pop("__metadata__", {})
        if not all(isinstance(text, str) for text in metadata.values()):
            raise ValueError("its metadata are not texts")
        for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            shape = tensor["shape"]
            if tensor["dtype"] != "F64" or type(shape) is not list or any(type(n) is not int or n < 0 for n in shape):
                raise ValueError(f"{one_line(name, 40)} is not a tensor of doubles")
            begin, end = end, end + 8 * math.prod(shape)
            if tensor["data_offsets"] != [begin, end]:
                raise ValueError("its tensors overlap, or leave a gap")
            shapes[name] = tuple(shape)
        if start + end != size:
            raise ValueError("its tensors end elsewhere than the file")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BadFile(path, f"not a file of parameters: {one_line(str(error), 100)}", _REMEDY) from None
    return shapes, metadata, start
