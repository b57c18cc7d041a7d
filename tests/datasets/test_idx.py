"""The IDX reader returns every row of a file, or an error that says what is wrong with the file."""

import gzip
import sys
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.datasets.encoding import encode_images, encode_labels
from zoomgrad.datasets import idx

# Written by hand, so that the reader and the encoder can't be wrong together.
IMAGES = bytes.fromhex("00000803 00000002 00000001 00000003") + bytes([1, 2, 3, 4, 5, 255])
LABELS = bytes.fromhex("00000801 00000002") + bytes([9, 0])

# Each example overwrites the previous example's files.
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def source(tmp_path):
    """`source(content)` writes a file and returns the Source to read it from."""

    def write(content, name="file"):
        (tmp_path / name).write_bytes(content)
        return idx.Source(tmp_path / name, "small", "Get another.")

    return write


def refusal(read, *sources):
    with pytest.raises(idx.CorruptData) as caught:
        read(*sources)
    return str(caught.value)


def one_byte_changed(content):
    return st.tuples(st.integers(0, len(content) - 1), st.integers(1, 255)).map(
        lambda change: content[: change[0]] + bytes([content[change[0]] ^ change[1]]) + content[change[0] + 1 :]
    )


@pytest.mark.parametrize("packed", [False, True], ids=["raw", "gzip"])
def test_reads_both_kinds(source, packed):
    wrap = gzip.compress if packed else bytes
    pixels, rows, width = idx.read_images(source(wrap(IMAGES), "images"))
    labels = idx.read_labels(source(wrap(LABELS), "labels"))
    assert (bytes(pixels), rows, width) == (bytes([1, 2, 3, 4, 5, 255]), 2, 3)
    assert bytes(labels) == bytes([9, 0])
    assert (pixels.readonly and labels.readonly) or sys.implementation.name == "pypy"


@same_folder
@given(data=st.data(), rows=st.integers(1, 5), height=st.integers(1, 4), width=st.integers(1, 4), packed=st.booleans())
def test_round_trip(source, data, rows, height, width, packed):
    pixels = data.draw(st.binary(min_size=rows * height * width, max_size=rows * height * width))
    labels = bytes(data.draw(st.lists(st.integers(0, 9), min_size=rows, max_size=rows)))
    wrap = gzip.compress if packed else bytes
    images_source = source(wrap(encode_images(pixels, height, width)), "images")
    labels_source = source(wrap(encode_labels(labels)), "labels")
    images, found_labels = idx.read_pair(images_source, labels_source)
    assert (bytes(images.pixels), images.rows, images.width) == (pixels, rows, height * width)
    assert bytes(found_labels) == labels


@pytest.mark.parametrize("read, content", [(idx.read_images, IMAGES), (idx.read_labels, LABELS)])
@pytest.mark.parametrize("wrap", [bytes, gzip.compress], ids=["raw", "gzip"])
def test_every_truncation_and_any_extra_byte_is_refused(source, read, content, wrap):
    whole = wrap(content)
    for size in range(len(whole)):
        refusal(read, source(whole[:size]))
    refusal(read, source(whole + b"\x00"))


@same_folder
@given(changed=one_byte_changed(gzip.compress(IMAGES, mtime=0)))
def test_a_changed_byte_of_gzip_never_changes_the_images(source, changed):
    """Some header bytes have no effect (time, system); the checksum covers all others."""
    try:
        images = idx.read_images(source(changed))
    except idx.CorruptData:
        return
    assert bytes(images.pixels) == IMAGES[16:]


@pytest.mark.parametrize(
    "content, cause",
    [
        (b"", "is empty"),
        (IMAGES[:15], "is cut short at byte 15, inside its header of 16 bytes"),
        (b"<!DOCTYPE html>", "starts with bytes 3c21444f; a file of images starts with 00000803"),
        (LABELS, "starts with bytes 00000801; a file of images starts with 00000803"),
        (IMAGES[:-1], "holds 1 images, its header says 2 (file cut short at byte 21)"),
        (IMAGES + b"\x00", "holds more than the 2 images its header says (they end at byte 22 of 23)"),
        (IMAGES[:4] + bytes(12), "has an empty shape at byte 4: 0 x 0 x 0"),
        (IMAGES[:4] + b"\xff" * 12, "holds 0 images, its header says 4,294,967,295 (file cut short at byte 16)"),
    ],
)
def test_images_refused(source, content, cause):
    assert refusal(idx.read_images, source(content, "digits.idx")) == f"small: digits.idx {cause}\n  Get another."


@pytest.mark.parametrize(
    "content, cause",
    [
        (IMAGES, "starts with bytes 00000803; a file of labels starts with 00000801"),
        (LABELS[:-1], "holds 1 labels, its header says 2 (file cut short at byte 9)"),
        (LABELS[:-1] + b"\x0a", "holds label 10 at byte 9, labels are 0 to 9"),
    ],
)
def test_labels_refused(source, content, cause):
    assert refusal(idx.read_labels, source(content, "labels.idx")) == f"small: labels.idx {cause}\n  Get another."


def test_a_pair_agrees_on_its_count(source):
    images = source(IMAGES, "images.idx")
    labels = source(encode_labels(bytes(3)), "labels.idx")
    assert refusal(idx.read_pair, images, labels) == (
        "small: labels.idx holds 3 labels, images.idx holds 2 images\n  Get another."
    )


def test_gzip_refused(source):
    packed = gzip.compress(IMAGES)
    assert "is corrupt gzip data (Error -3 while decompressing data: incorrect data check)" in refusal(
        idx.read_images, source(packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:])
    )
    assert f"has more data after the end of its gzip data at byte {len(packed)}" in refusal(
        idx.read_images, source(packed + b"more")
    )


def test_no_more_than_one_byte_above_the_limit_is_inflated(source, monkeypatch):
    """A gzip bomb: 16 MB in 16 kB."""
    inflated = []

    class Spy:
        def __init__(self, **options):
            self.real = real(**options)

        def decompress(self, *arguments):
            content = self.real.decompress(*arguments)
            inflated.append(len(content))
            return content

    bomb = source(gzip.compress(bytes(1 << 24)))
    real = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Spy)
    assert "inflates to more than the 1,000 bytes" in refusal(lambda s: idx.contents(s, 1000), bomb)
    assert inflated == [1001]
    assert "is 22 bytes long, at most 21 are expected" in refusal(lambda s: idx.contents(s, 21), source(IMAGES))
