"""MNIST enters the cache whole and verified, or not at all."""

import gzip
import hashlib
import os
import re
import socket
import stat
import sys
from pathlib import Path

import pytest

from datasets import Unavailable, idx, mnist
from tests.datasets.encoding import encode_images


def refusal(error, call):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_both_splits_are_loaded_through_the_cache(small, monkeypatch):
    small.give()
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    train, test = mnist.load(), mnist.load_test()
    assert (train.name, train.rows, train.train_rows) == ("mnist", 3, 3)
    assert (test.name, test.rows, test.train_rows) == ("mnist-test", 2, 0)
    assert (train.width, train.divisor, train.classes, train.target_width) == (4, 255.0, 10, 1)
    assert bytes(train.features) == bytes(range(12))
    assert bytes(train.targets) == bytes([9, 8, 7])
    assert list(test.inputs(1)) == [4 / 255, 5 / 255, 6 / 255, 7 / 255] + [0.0] * 8 + [1.0, 0.0]


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "raw"])
@pytest.mark.parametrize("dotted", [False, True], ids=["dash", "dot"])
def test_every_spelling_is_found(small, monkeypatch, packed, dotted):
    small.give(packed=packed, spell=lambda name: name.replace("-idx", ".idx") if dotted else name)
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    mnist.load(), mnist.load_test()
    assert small.cached() == sorted(file.cached_name for file in mnist.TRAIN + mnist.TEST)


def test_the_cache_is_private_and_holds_raw_files_named_by_hash(small, monkeypatch):
    small.give()
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    path = mnist.locate(mnist.TRAIN.images)
    content = small.contents["train-images-idx3-ubyte"]
    assert path.name == "train-images-idx3-ubyte-" + hashlib.sha256(content).hexdigest()[:8]
    assert path.read_bytes() == content
    if os.name == "posix":
        assert [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, small.cache)] == [0o700, 0o700]


def test_missing_data_names_the_places_searched(small, monkeypatch):
    remedy = (
        "\n  Run `python -m datasets.fetch` with a network connection, "
        "or point ZOOMGRAD_DATA at a folder with the four files."
    )
    cache = small.cache / "mnist"
    assert refusal(Unavailable, mnist.load) == (
        f"mnist: train-images-idx3-ubyte is not in the cache ({cache}), nor is ZOOMGRAD_DATA set{remedy}"
    )
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    assert refusal(Unavailable, mnist.load) == (
        f"mnist: train-images-idx3-ubyte is not in the cache ({cache}), nor in ZOOMGRAD_DATA ({small.folder}){remedy}"
    )
    assert not small.cache.exists()


@pytest.mark.parametrize(
    "damage, cause",
    [
        (lambda content: gzip.compress(content[:-1]), "holds 2 images, its header says 3 (file cut short at byte 27)"),
        (lambda content: gzip.compress(content + b"\x00"), "inflates to more than the 28 bytes expected"),
        (lambda content: b"<html>", "starts with bytes 3c68746d; a file of images starts with 00000803"),
    ],
)
def test_a_wrong_file_is_reported_not_skipped(small, monkeypatch, damage, cause):
    small.give()
    path = small.folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(small.contents["train-images-idx3-ubyte"]))
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    assert refusal(idx.CorruptData, mnist.load) == (
        f"mnist: train-images-idx3-ubyte.gz {cause}\n"
        f"  Delete {path} and run `python -m datasets.fetch`, or point ZOOMGRAD_DATA at a whole copy."
    )
    assert small.cached() == []


def test_a_well_formed_file_with_other_content_is_refused(small, monkeypatch):
    small.give()
    other = encode_images(bytes(12), 2, 2)
    (small.folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(other))
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    found, expected = hashlib.sha256(other).hexdigest()[:8], mnist.TRAIN.images.sha256[:8]
    assert f"is not the published file (SHA-256 {found}, expected {expected})\n" in refusal(idx.CorruptData, mnist.load)


def test_a_cache_that_cannot_be_written(small, monkeypatch):
    small.give()
    small.cache.write_text("a file where the folder should be")
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    message = refusal(Unavailable, mnist.load)
    assert message.startswith(f"mnist: the cache {small.cache / 'mnist'} can't be written (")
    assert message.endswith(")\n  Point ZOOMGRAD_CACHE at a writable folder.")


def test_an_interrupted_write_leaves_nothing(small, monkeypatch):
    small.give()
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        mnist.load()
    assert small.cached() == []


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


@pytest.fixture
def filled(small, monkeypatch):
    """A cache with all four files, and no other source for them."""
    small.fill(monkeypatch)
    return small


@pytest.mark.parametrize("which", ["images", "labels"])
def test_a_flipped_byte_in_the_cache_is_refused(filled, which):
    """A label of 8 instead of 9 is still valid, so only the hash detects the change."""
    path = mnist.locate(getattr(mnist.TRAIN, which))
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    message = refusal(idx.CorruptData, mnist.load)
    assert message.startswith(f"mnist: {path.name} is not the published file (SHA-256 ")
    assert message.endswith(
        f"\n  Delete {path} and run `python -m datasets.fetch`, or point ZOOMGRAD_DATA at a whole copy."
    )
    path.unlink()
    with pytest.raises(Unavailable):
        mnist.load()


def test_loaded_data_does_not_change_with_the_file(filled):
    """Mapping the file would be unsafe: if it shrinks, SIGBUS ends the process; if it changes, so does the training."""
    path = mnist.locate(mnist.TRAIN.images)
    train = mnist.load()
    with path.open("r+b") as file:
        file.write(bytes(28))
        file.truncate(0)
    assert bytes(train.features) == bytes(range(12))
    if sys.implementation.name != "pypy":
        with pytest.raises(TypeError):
            train.features[0] = 1


def test_cffi_gets_rows_without_a_copy(filled):
    """PyPy copies a buffer that it can't address byte by byte, in every call of C."""
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    rows = memoryview(mnist.load().features)[4:]
    first, second = (ffi.from_buffer("char[]", rows.cast("B")) for _ in range(2))
    assert int(ffi.cast("intptr_t", first)) == int(ffi.cast("intptr_t", second))


SPECIAL = {
    "FIFO": os.mkfifo if hasattr(os, "mkfifo") else None,
    "folder": os.mkdir,
    "socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has FIFOs and devices")
@pytest.mark.parametrize("where", ["cache", "data"])
@pytest.mark.parametrize("kind", SPECIAL)
def test_a_special_file_neither_hangs_nor_crashes_the_reader(filled, monkeypatch, kind, where):
    if where == "cache":
        path = mnist.locate(mnist.TRAIN.labels)
    else:
        path = filled.folder / f"{mnist.TRAIN.labels.name}.gz"
        mnist.locate(mnist.TRAIN.labels).unlink()
        monkeypatch.setenv("ZOOMGRAD_DATA", str(filled.folder))
    path.unlink()
    monkeypatch.chdir(path.parent)  # a socket's path must be short
    SPECIAL[kind](Path(path.name) if kind == "socket" else path)
    message = refusal(idx.CorruptData, mnist.load)
    assert re.match(rf"mnist: {re.escape(path.name)} (is not a regular|can't be read \()", message)
    assert f"\n  Delete {path} and run" in message


@pytest.mark.parametrize("variable", ["ZOOMGRAD_DATA", "ZOOMGRAD_CACHE"])
@pytest.mark.parametrize("path", ["data", "~nobody-of-that-name/data", "/dev/null"])
def test_a_path_that_is_not_of_a_folder_is_refused(small, monkeypatch, variable, path):
    """Workers run in other folders, where a relative path means something else."""
    small.give()
    if variable == "ZOOMGRAD_CACHE":
        monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    monkeypatch.setenv(variable, path)
    message = refusal(Unavailable, mnist.load)
    assert variable in message
    assert message.endswith(("by an absolute path.", "Point ZOOMGRAD_CACHE at a writable folder."))


def test_caches_that_are_off_still_keep_data(monkeypatch, tmp_path):
    """Data would have to be downloaded again."""
    monkeypatch.setenv("ZOOMGRAD_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert mnist.cache_folder() == tmp_path / "zoomgrad" / "mnist"
