"""The IDX reader returns every row of a published file, or an error that says what is wrong with the file."""

import gzip
import hashlib
import sys
import zlib

import pytest

from zoomgrad.datasets import idx

# Written by hand, so that the reader and the tests' encoder can't be wrong together.
IMAGES = bytes.fromhex("00000803 00000002 00000001 00000003") + bytes([1, 2, 3, 4, 5, 255])
LABELS = bytes.fromhex("00000801 00000002") + bytes([9, 0])


@pytest.fixture
def source(tmp_path):
    """`source(content, published)` writes a file and returns the Source to read it from."""

    def write(content, published=IMAGES, name="file"):
        (tmp_path / name).write_bytes(content)
        return idx.Source(
            tmp_path / name, "small", "Get another.", len(published), hashlib.sha256(published).hexdigest()
        )

    return write


@pytest.mark.parametrize("wrap", [bytes, gzip.compress], ids=["raw", "gzip"])
def test_rows_are_those_of_the_file(source, wrap):
    images, labels = source(wrap(IMAGES), name="images"), source(wrap(LABELS), LABELS, "labels")
    dataset = idx.load("small", images, labels, divisor=255.0, train_rows=1)
    assert (bytes(dataset.features), bytes(dataset.targets)) == (bytes([1, 2, 3, 4, 5, 255]), bytes([9, 0]))
    assert (dataset.rows, dataset.width, dataset.train_rows) == (2, 3, 1)
    assert (dataset.features.readonly and dataset.targets.readonly) or sys.implementation.name == "pypy"


@pytest.mark.parametrize("wrap", [bytes, lambda content: gzip.compress(content, mtime=0)], ids=["raw", "gzip"])
def test_content_that_is_cut_or_changed_is_refused(source, wrap):
    """Some bytes of gzip have no effect on the content (time, system), and its last bytes only repeat a checksum."""
    whole = wrap(IMAGES)
    cut = [whole[:size] for size in range(len(whole))]
    changed = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    refused = 0
    for content in (*cut, *changed, whole + b"\0"):
        try:
            assert bytes(idx.read(source(content))) == IMAGES
        except idx.CorruptData as error:
            assert str(error).startswith("small: file ") and str(error).endswith("\n  Get another.")
            refused += 1
    assert refused >= 2 * len(IMAGES)


def test_no_more_than_one_byte_above_the_published_size_is_inflated(source, monkeypatch):
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
    with pytest.raises(idx.CorruptData, match="inflates to more than the 22 bytes of the published file"):
        idx.read(bomb)
    assert inflated == [23]
    with pytest.raises(idx.CorruptData, match="is 65,559 bytes long, but the published file has 22"):
        idx.read(source(bytes(22 + idx.PACKING_BYTES + 1)))
