"""optdigits.tes -> the two embedded files of `datasets.digits`.

A script for maintainers: `python -m datasets.rebuild_digits [SOURCE]`. Only this module reads the published text format
of the digits. SOURCE is UCI's `optdigits.tes` or scikit-learn's copy, `digits.csv.gz`, which has the same rows in the
same order, in some releases as floats. Without SOURCE, the script downloads the file from UCI.
"""

import argparse
import gzip
import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Optional

from datasets import digits, idx
from datasets.dataset import Unavailable

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/optdigits/optdigits.tes"
REMEDY = "As SOURCE, give UCI's optdigits.tes or the digits.csv.gz inside a scikit-learn wheel."

_PIXELS = digits.SIDE * digits.SIDE


def main(arguments: Optional["list[str]"] = None) -> int:
    """Rebuild both files, or print why that failed. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m datasets.rebuild_digits", description="Rebuild the digits.")
    parser.add_argument("source", nargs="?", type=Path, help="optdigits.tes or digits.csv.gz (default: download)")
    source = parser.parse_args(arguments).source
    try:
        if source is not None:
            rebuild(source)
        else:
            with tempfile.TemporaryDirectory() as folder:
                rebuild(download(Path(folder)))
    except (OSError, Unavailable, idx.CorruptData) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Rebuilt {digits.IMAGES_PATH.name} and {digits.LABELS_PATH.name} in {digits.IMAGES_PATH.parent}")
    return 0


def rebuild(path: Path) -> None:
    """Verify the content of both embedded files, then write them. Raises CorruptData."""
    source = idx.Source(path, "digits", REMEDY)
    pixels, labels = parse(source)
    images_file = idx.encode_images(pixels, digits.SIDE, digits.SIDE)
    labels_file = idx.encode_labels(labels)
    for content, expected in ((images_file, digits.IMAGES_SHA256), (labels_file, digits.LABELS_SHA256)):
        found = hashlib.sha256(content).hexdigest()
        if found != expected:
            raise source.corrupt(
                f"holds {len(labels):,} digits, but not the embedded ones (SHA-256 {found[:8]}, pinned {expected[:8]})"
            )
    _write(digits.IMAGES_PATH, images_file)
    _write(digits.LABELS_PATH, labels_file)


def parse(source: idx.Source) -> "tuple[bytes, bytes]":
    """Return the pixels and labels of a text with 65 comma-separated numbers per line. Raises CorruptData."""
    pixels = bytearray()
    labels = bytearray()
    for number, line in enumerate(bytes(idx.contents(source)).splitlines(), start=1):
        fields = line.split(b",")
        if len(fields) != _PIXELS + 1:
            raise source.corrupt(f"has {len(fields)} fields in line {number:,}, a row has {_PIXELS + 1}")
        *row, label = (
            _integer(field, digits.LARGEST_VALUE if column < _PIXELS else digits.CLASSES - 1, source, number)
            for column, field in enumerate(fields)
        )
        pixels.extend(row)
        labels.append(label)
    return bytes(pixels), bytes(labels)


def download(folder: Path) -> Path:
    """Download UCI's file into `folder`. Raises Unavailable if offline or without pooch."""
    path = folder / "optdigits.tes"
    try:
        import pooch  # type: ignore[import-untyped]

        pooch.HTTPDownloader(timeout=10)(URL, str(path), None)
    except (ImportError, OSError) as error:
        raise Unavailable(f"digits: {URL} was not downloaded ({type(error).__name__})", REMEDY) from error
    return path


def _integer(field: bytes, largest: int, source: idx.Source, line: int) -> int:
    try:
        value = float(field)
    except ValueError:
        value = -1.0
    if value not in range(largest + 1):
        shown = field.decode("ascii", "backslashreplace")
        raise source.corrupt(f"has '{shown}' in line {line:,}, an integer from 0 to {largest} is expected")
    return int(value)


def _write(path: Path, content: bytes) -> None:
    # Leave name and time out of the header, so that the same content gives the same file.
    with path.open("wb") as stream, gzip.GzipFile("", "wb", 9, stream, mtime=0) as packed:
        packed.write(content)


if __name__ == "__main__":
    sys.exit(main())
