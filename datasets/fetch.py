"""Mirrors -> MNIST in the cache. Only the harness uses this module, and it is the only one of a run that downloads.

What a mirror sends is untrusted until `mnist.admit` has verified it. `python -m zoomgrad.datasets.fetch` runs
it by hand.
"""

import contextlib
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from zoomgrad.datasets import idx, mnist
from zoomgrad.datasets.dataset import Unavailable
from zoomgrad.datasets.idx import CorruptData

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
TIMEOUT_SECONDS = (10, 30)
"""To connect, and between two parts of a file."""
REMEDY = "Try again with a network connection, or point ZOOMGRAD_DATA at a folder with the four files."


def fetch_for(readers: Iterable[Any]) -> None:
    """Fetch MNIST if one of these reads it. Workers report any failure."""
    if mnist.load in readers:
        with contextlib.suppress(Unavailable, CorruptData):
            fetch_mnist()


def fetch_mnist(mirrors: Sequence[str] = MIRRORS) -> None:
    """Store all four files in the cache: from $ZOOMGRAD_DATA, else from the first mirror that sends the right bytes.

    Raises Unavailable if no mirror does, and CorruptData for a wrong file in $ZOOMGRAD_DATA.
    """
    for file in mnist.TRAIN + mnist.TEST:
        if mnist.find(file) is None:
            _download(file, mirrors)


def _download(file: mnist.File, mirrors: Sequence[str]) -> None:
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError as error:
        remedy = "Run `pip install pooch`, or point ZOOMGRAD_DATA at a folder with the four files."
        raise Unavailable(f"mnist: {file.name} can't be downloaded without pooch", remedy) from error
    # The plain downloader, because pooch's own cache would keep unverified files.
    downloader = pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS)
    failures = []
    for mirror in mirrors:
        try:
            with tempfile.TemporaryDirectory() as folder:
                packed = Path(folder) / f"{file.name}.gz"
                with packed.open("wb") as stream:
                    downloader(mirror + packed.name, _Bounded(stream, file.size + idx.PACKING_BYTES), None)
                mnist.admit(file, packed)
                return
        # requests raises OSErrors, and ValueErrors if the answer is not HTTP; CorruptData is a ValueError too.
        except (OSError, ValueError) as error:
            # Leave out the remedy, which names a temporary file that is already deleted.
            reason = str(error).splitlines()[0] if isinstance(error, (CorruptData, _TooMuch)) else type(error).__name__
            failures.append(f"{urlsplit(mirror).netloc}: {reason}")
    raise Unavailable(f"mnist: no mirror sent {file.name}.gz ({'; '.join(failures)})", REMEDY)


class _TooMuch(OSError):
    """A mirror sends too much."""


class _Bounded:
    """A file for a download, with a limit of bytes."""

    def __init__(self, file: BinaryIO, most_bytes: int) -> None:
        self._file = file
        self._left = most_bytes
        self.flush = file.flush

    def write(self, content: bytes) -> None:
        self._left -= len(content)
        if self._left < 0:
            raise _TooMuch("sent more bytes than the file has")
        self._file.write(content)


def main() -> int:
    """Fetch the files, or print why that failed. Returns the exit code."""
    try:
        fetch_mnist()
    except (Unavailable, CorruptData) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"MNIST is in {mnist.cache_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
