"""IDX file -> rows of bytes.

The only module that knows the layout of MNIST's file format: a big-endian magic number, the count, for images their
height and width, then one byte a pixel or label. A raw file is mapped, so that workers share its pages; a gzip'd one,
told by its first bytes rather than its name, is inflated in memory. Whatever is not exactly one whole file is refused.

Yann LeCun, Corinna Cortes, Christopher J. C. Burges, "The MNIST database of handwritten digits", 1998.
"""

import math
import mmap
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

# MNIST's training images, the largest file in use, are 47 MB.
LARGEST_BYTES = 1 << 26

_GZIP = b"\x1f\x8b"


class CorruptData(ValueError):
    """A file that is not what it should be: which, where in it, and how to get a whole one."""


class Source(NamedTuple):
    """A file to read, and what its errors say around their cause: whose it is, and how to get a whole one."""

    path: Path
    dataset: str
    remedy: str

    def corrupt(self, cause: str) -> CorruptData:
        """The error to raise, in full: `cause` continues a sentence that starts with the file's name."""
        return CorruptData(f"{self.dataset}: {self.path.name} {cause}\n  {self.remedy}")


class Images(NamedTuple):
    """Pixels as unsigned bytes, `rows * width` of them, row-major; an image is one row of `width` pixels."""

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
    """Images and their labels, as many of the one as of the other. Raises CorruptData."""
    found_images = read_images(images)
    found_labels = read_labels(labels, classes)
    if len(found_labels) != found_images.rows:
        raise labels.corrupt(
            f"holds {len(found_labels):,} labels, {images.path.name} holds {found_images.rows:,} images"
        )
    return found_images, found_labels


def read_images(source: Source) -> Images:
    """The images of one file. Raises CorruptData."""
    pixels, (rows, height, width) = _items(source, _IMAGES)
    return Images(pixels, rows, height * width)


def read_labels(source: Source, classes: int = 10) -> memoryview:
    """The labels of one file, each from 0 to `classes` - 1. Raises CorruptData."""
    labels, _ = _items(source, _LABELS)
    if max(labels) >= classes:
        index, label = next((index, label) for index, label in enumerate(labels) if label >= classes)
        raise source.corrupt(
            f"holds label {label} at byte {_LABELS.header_bytes + index:,}, labels are 0 to {classes - 1}"
        )
    return labels


def contents(source: Source, limit: int = LARGEST_BYTES) -> memoryview:
    """All bytes of a file, read-only: mapped, or inflated if it is gzip'd.

    Raises CorruptData for broken gzip data and above `limit` bytes, of which one more at most is ever inflated.
    """
    with source.path.open("rb") as stream:
        if stream.read(len(_GZIP)) == _GZIP:
            return memoryview(_inflate(source, limit))
        size = os.fstat(stream.fileno()).st_size
        if size > limit:
            raise source.corrupt(f"is {size:,} bytes long, {limit:,} at most are expected")
        # An empty file can't be mapped.
        return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")


def encode_images(pixels: bytes, height: int, width: int) -> bytes:
    """The IDX file of `pixels`, images of `height` rows of `width` bytes one after the other."""
    return _IMAGES.magic + _IMAGES.shape.pack(len(pixels) // (height * width), height, width) + pixels


def encode_labels(labels: bytes) -> bytes:
    """The IDX file of `labels`, a byte each."""
    return _LABELS.magic + _LABELS.shape.pack(len(labels)) + labels


def _items(source: Source, kind: _Kind) -> "tuple[memoryview, tuple[int, ...]]":
    content = contents(source)
    size = len(content)
    if not size:
        raise source.corrupt("is empty")
    magic = bytes(content[: len(kind.magic)])
    if not kind.magic.startswith(magic):
        raise source.corrupt(f"starts with bytes {magic.hex()}, a file of {kind.items} with {kind.magic.hex()}")
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
    return content[kind.header_bytes :], shape


def _inflate(source: Source, limit: int) -> bytes:
    # Not the gzip module: it reads ahead of what is asked, and can't say where the data was cut.
    packed = source.path.read_bytes()
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
        raise source.corrupt(f"goes on after the end of its gzip data at byte {end:,}")
    return content
