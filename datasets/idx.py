"""IDX file -> rows of bytes.

Only this module knows MNIST's file format: a big-endian magic number, the count, the height and width of images, then
one byte per pixel or label. It reads the whole file into private memory, so the data can't change after it was
verified. The first bytes, not the name, decide whether a file is gzip data to inflate. The reader refuses anything
except one complete regular file: a FIFO would block it, and a device may never end.

Yann LeCun, Corinna Cortes, Christopher J. C. Burges, "The MNIST database of handwritten digits", 1998.
"""

import hashlib
import math
import mmap
import os
import stat
import struct
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

# MNIST's training images, the largest file in use, are 47 MB.
LARGEST_BYTES = 1 << 26

PACKING_BYTES = 1 << 16
"""Bytes by which gzip data may exceed its content: file names, and a thousandth for incompressible data."""

_GZIP = b"\x1f\x8b"


class CorruptData(ValueError):
    """A file has the wrong content. The message names the file, the place and the remedy."""


class Source(NamedTuple):
    """A file to read, with the dataset and the remedy that its error messages name."""

    path: Path
    dataset: str
    remedy: str
    sha256: str = ""
    """Hash of the inflated bytes; if empty, any content is accepted."""

    def corrupt(self, cause: str) -> CorruptData:
        """The error to raise. cause: the rest of a sentence that starts with the file's name."""
        return CorruptData(f"{self.dataset}: {self.path.name} {cause}\n  {self.remedy}")

    def too_long(self, size: int, limit: int) -> CorruptData:
        """The error for a file above its limit in bytes."""
        return self.corrupt(f"is {size:,} bytes long, at most {limit:,} are expected")


class Images(NamedTuple):
    """`rows * width` pixels as unsigned bytes, row-major. An image is one row of `width` pixels."""

    pixels: memoryview
    rows: int
    width: int


class _Kind(NamedTuple):
    items: str
    magic: bytes
    shape: struct.Struct

    @property
    def header_bytes(self) -> int:
        return len(self.magic) + self.shape.size


_IMAGES = _Kind("images", b"\x00\x00\x08\x03", struct.Struct(">3I"))
_LABELS = _Kind("labels", b"\x00\x00\x08\x01", struct.Struct(">1I"))


def read_pair(images: Source, labels: Source, classes: int = 10) -> "tuple[Images, memoryview]":
    """Read images and their labels. Raises CorruptData, also if their counts differ."""
    pixels = read_images(images)
    classes_of_rows = read_labels(labels, classes)
    if len(classes_of_rows) != pixels.rows:
        raise labels.corrupt(f"holds {len(classes_of_rows):,} labels, {images.path.name} holds {pixels.rows:,} images")
    return pixels, classes_of_rows


def read_images(source: Source) -> Images:
    """Read the images of one file. Raises CorruptData."""
    pixels, (rows, height, width) = _items(source, _IMAGES)
    return Images(pixels, rows, height * width)


def read_labels(source: Source, classes: int = 10) -> memoryview:
    """Read the labels of one file, each from 0 to `classes` - 1. Raises CorruptData."""
    labels, _ = _items(source, _LABELS)
    if max(labels) >= classes:
        index, label = next((index, label) for index, label in enumerate(labels) if label >= classes)
        raise source.corrupt(
            f"holds label {label} at byte {_LABELS.header_bytes + index:,}, labels are 0 to {classes - 1}"
        )
    return labels


def contents(source: Source, limit: int = LARGEST_BYTES) -> memoryview:
    """Return all bytes of a file, inflated if it is gzip data.

    Inflates at most `limit` + 1 bytes. Raises CorruptData for a file that can't be read, broken gzip data or more than
    `limit` bytes, and FileNotFoundError if there is no such file.
    """
    content = _read(source, limit)
    if content[: len(_GZIP)] == _GZIP:
        return memoryview(_inflate(source, content, limit))
    if len(content) > limit:
        raise source.too_long(len(content), limit)
    return content


def sha256(content: memoryview) -> str:
    """SHA-256 of the bytes that `contents` returns, as hexadecimal digits."""
    # PyPy would copy a mapping that is hashed through a view.
    whole = isinstance(content.obj, mmap.mmap) and len(content.obj) == len(content)
    return hashlib.sha256(content.obj if whole else content).hexdigest()


def _items(source: Source, kind: _Kind) -> "tuple[memoryview, tuple[int, ...]]":
    content = contents(source)
    size = len(content)
    if not size:
        raise source.corrupt("is empty")
    magic = bytes(content[: len(kind.magic)])
    if not kind.magic.startswith(magic):
        raise source.corrupt(f"starts with bytes {magic.hex()}; a file of {kind.items} starts with {kind.magic.hex()}")
    if size < kind.header_bytes:
        raise source.corrupt(f"is cut short at byte {size}, inside its header of {kind.header_bytes} bytes")

    shape = kind.shape.unpack_from(content, len(magic))
    count = shape[0]
    item_bytes = math.prod(shape[1:])
    if not count * item_bytes:
        raise source.corrupt(f"has an empty shape at byte {len(magic)}: {' x '.join(map(str, shape))}")

    end = kind.header_bytes + count * item_bytes
    if size < end:
        held = (size - kind.header_bytes) // item_bytes
        raise source.corrupt(
            f"holds {held:,} {kind.items}, its header says {count:,} (file cut short at byte {size:,})"
        )
    if size > end:
        raise source.corrupt(
            f"holds more than the {count:,} {kind.items} its header says (they end at byte {end:,} of {size:,})"
        )
    if source.sha256:
        digest = sha256(content)
        if digest != source.sha256:
            raise source.corrupt(f"is not the published file (SHA-256 {digest[:8]}, expected {source.sha256[:8]})")
    return content[kind.header_bytes :], shape


def _read(source: Source, limit: int) -> memoryview:
    try:
        # Without these flags, opening a FIFO waits for its writer, and a terminal becomes the controlling one.
        descriptor = os.open(source.path, os.O_RDONLY | _AT_ONCE)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise source.corrupt("is not a regular file")
            if facts.st_size > limit + PACKING_BYTES:
                raise source.too_long(facts.st_size, limit)
            return _filled(descriptor, facts.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        if not os.path.lexists(source.path):
            raise
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


def _inflate(source: Source, packed: memoryview, limit: int) -> bytes:
    # Not the gzip module, because it reads ahead and can't report where the data was cut.
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        content = inflater.decompress(packed, limit + 1)
    except zlib.error as error:
        raise source.corrupt(f"is corrupt gzip data ({error})") from error
    if len(content) > limit:
        raise source.corrupt(f"inflates to more than the {limit:,} bytes expected")
    if not inflater.eof:
        raise source.corrupt(f"is gzip data cut short at byte {len(packed):,}")
    if inflater.unused_data:
        end = len(packed) - len(inflater.unused_data)
        raise source.corrupt(f"has more data after the end of its gzip data at byte {end:,}")
    return content
