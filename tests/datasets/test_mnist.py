"""MNIST enters the cache whole and verified, or not at all."""

import gzip
import hashlib
import os
import re
import stat

import pytest

from tests.datasets.encoding import encode_images
from zoomgrad.datasets import Unavailable, idx, mnist

REMEDY = "run `python -m zoomgrad.datasets.fetch`, or point ZOOMGRAD_DATA at a whole copy."


def refusal(error=idx.CorruptData):
    with pytest.raises(error) as caught:
        mnist.load()
    return str(caught.value)


@pytest.fixture
def given(small, monkeypatch):
    """ZOOMGRAD_DATA with all four files, and an empty cache."""
    small.give()
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    return small


@pytest.fixture
def filled(given, monkeypatch):
    """A cache with all four files, and no other source for them."""
    for file in mnist.TRAIN + mnist.TEST:
        mnist.locate(file)
    monkeypatch.delenv("ZOOMGRAD_DATA")
    return given


def test_both_splits_are_loaded_through_the_cache(given):
    train, test = mnist.load(), mnist.load_test()
    assert (train.name, train.rows, train.train_rows) == ("mnist", 3, 3)
    assert (test.name, test.rows, test.train_rows) == ("mnist-test", 2, 0)
    assert (train.width, train.divisor, train.classes, train.target_width) == (4, 255.0, 10, 1)
    assert bytes(train.features) == bytes(range(12))
    assert bytes(train.targets) == bytes([9, 8, 7])
    assert list(test.inputs(1)) == [4 / 255, 5 / 255, 6 / 255, 7 / 255] + [0.0] * 8 + [1.0, 0.0]


@pytest.mark.parametrize(("packed", "dotted"), [(True, True), (False, False)])
def test_every_spelling_is_found(small, monkeypatch, packed, dotted):
    small.give(packed=packed, spell=lambda name: name.replace("-idx", ".idx") if dotted else name)
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    mnist.load(), mnist.load_test()
    assert small.cached() == sorted(file.cached_name for file in mnist.TRAIN + mnist.TEST)


def test_the_cache_is_private_and_holds_raw_files(given):
    path = mnist.locate(mnist.TRAIN.images)
    assert path.read_bytes() == given.contents["train-images-idx3-ubyte"]
    if os.name == "posix":
        assert [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, given.cache)] == [0o700, 0o700]


def test_missing_data_names_the_places_searched(small, monkeypatch):
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    assert refusal(Unavailable) == (
        f"mnist: train-images-idx3-ubyte is not in the cache ({small.cache / 'mnist'}), "
        f"nor in ZOOMGRAD_DATA ({small.folder})\n"
        "  Run `python -m zoomgrad.datasets.fetch` online, or point ZOOMGRAD_DATA at a folder with the four files."
    )
    assert not small.cache.exists()


def test_a_wrong_file_is_reported_not_skipped(given):
    path = given.folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(encode_images(bytes(12), 2, 2)))
    cause = r"is not the published file \(SHA-256 [0-9a-f]{8}, expected [0-9a-f]{8}\)"
    assert re.fullmatch(f"mnist: {path.name} {cause}\n  Delete {path} and {re.escape(REMEDY)}", refusal())
    assert given.cached() == []


def test_the_real_files_if_they_are_here():
    try:
        train, test = mnist.load(), mnist.load_test()
    except Unavailable as error:
        pytest.skip(str(error))
    assert (train.rows, train.train_rows, train.width, test.rows, test.train_rows) == (60000, 60000, 784, 10000, 0)
    assert hashlib.sha256(train.features.obj).hexdigest() == mnist.TRAIN.images.sha256
    assert list(train.targets[:5]) == [5, 0, 4, 1, 9]
    assert list(test.targets[:5]) == [7, 2, 1, 0, 4]


# --- damaged caches and unusual paths ----------------------------------------------------------------------------


def test_a_flipped_byte_in_the_cache_is_refused(filled):
    """A label of 8 instead of 9 is still valid, so only the hash detects the change."""
    path = mnist.locate(mnist.TRAIN.labels)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert refusal().startswith(f"mnist: {path.name} is not the published file (SHA-256 ")


def test_loaded_data_does_not_change_with_the_file(filled):
    """Mapping the file would be unsafe: if it shrinks, SIGBUS ends the process; if it changes, so does the training."""
    path = mnist.locate(mnist.TRAIN.images)
    train = mnist.load()
    with path.open("r+b") as file:
        file.write(bytes(28))
        file.truncate(0)
    assert bytes(train.features) == bytes(range(12))


SPECIAL = {
    "FIFO": os.mkfifo if hasattr(os, "mkfifo") else None,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
}


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has FIFOs and devices")
@pytest.mark.parametrize("kind", SPECIAL)
def test_a_special_file_neither_hangs_nor_crashes_the_reader(filled, kind):
    path = mnist.locate(mnist.TRAIN.labels)
    path.unlink()
    SPECIAL[kind](path)
    assert re.match(rf"mnist: {re.escape(path.name)} (is not a regular|can't be read \()", refusal())


@pytest.mark.parametrize("variable", ["ZOOMGRAD_DATA", "ZOOMGRAD_CACHE"])
@pytest.mark.parametrize("path", ["data", "~nobody-of-that-name/data", "/dev/null"])
def test_a_path_that_is_not_of_a_folder_is_refused(small, monkeypatch, variable, path):
    """Workers run in other folders, where a relative path means something else."""
    small.give()
    if variable == "ZOOMGRAD_CACHE":
        monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    monkeypatch.setenv(variable, path)
    message = refusal(Unavailable)
    assert variable in message
    assert message.endswith(("by an absolute path.", "Point ZOOMGRAD_CACHE at a writable folder."))
