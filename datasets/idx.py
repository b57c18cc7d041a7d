"""Published IDX files -> Dataset.

Only this module knows MNIST's file format: a big-endian magic number, the count, the height and width of images, then
one byte per pixel or label. Size and SHA-256 decide whether a file is the published one, before anything is parsed. The
whole file is read into private memory, so the data can't change after it was verified. The first bytes, not the name,
decide whether a file is gzip data to inflate. The reader refuses anything except a regular file: a FIFO would block it,
and a device may never end.

Yann LeCun, Corinna Cortes, Christopher J. C. Burges, "The MNIST database of handwritten digits", 1998.
"""

import hashlib
import mmap
import os
import stat
import struct
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

from zoomgrad.datasets.dataset import Dataset

PACKING_BYTES = 1 << 16
"""Bytes by which gzip data may exceed its content: file names, and a thousandth for incompressible data."""
CLASSES = 10

_GZIP = b"\x1f\x8b"
_LABELS_HEADER = struct.Struct(">2I")
"""Magic number and count."""
_IMAGES_HEADER = struct.Struct(">4I")
"""Magic number, count, height and width."""


class CorruptData(ValueError):
    """A file has the wrong content. The message names the file, the place and the remedy."""


class Source(NamedTuple):
    """A published file to read, with the dataset and the remedy that its error messages name."""

    path: Path
    dataset: str
    remedy: str
    size: int
    """Number of inflated bytes."""
    sha256: str
    """Hash of the inflated bytes."""

    def corrupt(self, cause: str) -> CorruptData:
        """The error to raise. cause: the rest of a sentence that starts with the file's name."""
        return CorruptData(f"{self.dataset}: {self.path.name} {cause}\n  {self.remedy}")


def load(name: str, images: Source, labels: Source, *, divisor: float, train_rows: int) -> Dataset:
    """Dataset of the images in one file and their labels in the other. Raises CorruptData."""
    content = read(images)
    _, _, height, width = _IMAGES_HEADER.unpack_from(content)
    return Dataset(
        name=name,
        features=content[_IMAGES_HEADER.size :],
        width=height * width,
        divisor=divisor,
        targets=read(labels)[_LABELS_HEADER.size :],
        classes=CLASSES,
        target_width=1,
        train_rows=train_rows,
    )


def read(source: Source) -> memoryview:
    """All bytes of the published file, inflated if it is gzip data. Raises CorruptData for any other content."""
    content = _read(source)
    if content[: len(_GZIP)] == _GZIP:
        content = memoryview(_inflated(source, content))
    if len(content) != source.size:
        raise source.corrupt(f"holds {len(content):,} bytes instead of {source.size:,}")
    digest = _sha256(content)
    if digest != source.sha256:
        raise source.corrupt(f"is not the published file (SHA-256 {digest[:8]}, expected {source.sha256[:8]})")
    return content


def _sha256(content: memoryview) -> str:
    # PyPy would copy a mapping that is hashed through a view.
    whole = isinstance(content.obj, mmap.mmap) and len(content.obj) == len(content)
    return hashlib.sha256(content.obj if whole else content).hexdigest()


def _read(source: Source) -> memoryview:
    try:
        # Without these flags, opening a FIFO waits for its writer, and a terminal becomes the controlling one.
        descriptor = os.open(source.path, os.O_RDONLY | _AT_ONCE)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise source.corrupt("is not a regular file")
            if facts.st_size > source.size + PACKING_BYTES:
                raise source.corrupt(f"is {facts.st_size:,} bytes long, but the published file has {source.size:,}")
            return _filled(descriptor, facts.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise source.corrupt(f"can't be read ({error.strerror})") from error


def _filled(descriptor: int, size: int) -> memoryview:
    """Up to `size` bytes from the descriptor, read-only except on PyPy."""
    if not size:
        return memoryview(b"")  # an empty mapping is an error
    # A mapping, because C can get its address on every interpreter. Private, for large pages.
    memory = mmap.mmap(-1, size, **_PRIVATE)
    taken = 0
    with memoryview(memory) as whole, os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
        while taken < size:
            count = file.readinto(whole[taken:])
            if not count:
                break  # the file became shorter
            taken += count
    view = memoryview(memory) if taken == size else memoryview(memory)[:taken]
    # PyPy finds no address under `toreadonly` and copies byte by byte: 5 s for 47 MB, in each call of C.
    return view if sys.implementation.name == "pypy" else view.toreadonly()


_AT_ONCE = sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"))
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}


def _inflated(source: Source, packed: memoryview) -> bytes:
    # Not the gzip module, because it inflates everything that it reads.
    try:
        content = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(packed, source.size + 1)
    except zlib.error as error:
        raise source.corrupt(f"is corrupt gzip data ({error})") from error
    if len(content) > source.size:
        raise source.corrupt(f"inflates to more than the {source.size:,} bytes of the published file")
    return content
