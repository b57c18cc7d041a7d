"""Mirrors -> MNIST in the cache.

Only the harness uses this module (CPython 3.11 or newer), and it is the only module of a run that uses the network.
Downloads are untrusted until `mnist.admit` has verified them. `python -m datasets.fetch` runs it by hand.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from datasets import idx, mnist
from datasets.dataset import Unavailable
from datasets.idx import CorruptData

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)

CONNECT_TIMEOUT_SECONDS = 10
READ_TIMEOUT_SECONDS = 30
DOWNLOAD_SECONDS = 600.0


def fetch_mnist(mirrors: Sequence[str] = MIRRORS) -> None:
    """Put all four files into the cache: from $ZOOMGRAD_DATA, else from the first mirror that sends the right bytes.

    Raises Unavailable if no mirror does, and CorruptData for a wrong file in $ZOOMGRAD_DATA.
    """
    for file in mnist.TRAIN + mnist.TEST:
        if mnist.find(file) is None:
            _download(file, mirrors)


def _download(file: mnist.File, mirrors: Sequence[str]) -> None:
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError as error:
        raise Unavailable(
            f"mnist: {file.name} can't be downloaded without pooch",
            "Run `pip install pooch`, or point ZOOMGRAD_DATA at a folder with the four files.",
        ) from error
    # The plain downloader, because pooch's own cache would keep unverified files.
    downloader = pooch.HTTPDownloader(timeout=(CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS))
    failures = []
    name = f"{file.name}.gz"
    for mirror in mirrors:
        try:
            with tempfile.TemporaryDirectory() as folder:
                packed = Path(folder) / name
                with packed.open("wb") as stream:
                    downloader(mirror + name, _Bounded(stream, file.size + idx.PACKING_BYTES), None)
                mnist.admit(file, packed)
                return
        # requests raises OSErrors, and ValueErrors if the answer is not HTTP; CorruptData is a ValueError too.
        except (OSError, ValueError) as error:
            failures.append(f"{urlsplit(mirror).netloc}: {_cause(error)}")
    raise Unavailable(
        f"mnist: no mirror sent {name} ({'; '.join(failures)})",
        "Try again with a network connection, or point ZOOMGRAD_DATA at a folder with the four files.",
    )


class _TooMuch(OSError):
    """A mirror sends too much, or takes too long."""


class _Bounded:
    """A file for a download, with a limit of bytes and of time."""

    def __init__(self, file: BinaryIO, most_bytes: int) -> None:
        self._file = file
        self._left = most_bytes
        self._until = time.monotonic() + DOWNLOAD_SECONDS

    def write(self, content: bytes) -> None:
        self._left -= len(content)
        if self._left < 0:
            raise _TooMuch("sent more bytes than the file has")
        if time.monotonic() > self._until:
            raise _TooMuch(f"took longer than {DOWNLOAD_SECONDS:g} s")
        self._file.write(content)

    def flush(self) -> None:
        self._file.flush()


def _cause(error: Exception) -> str:
    if isinstance(error, _TooMuch):
        return str(error)
    if isinstance(error, CorruptData):
        # Drop its remedy, which names a temporary file that is already deleted.
        return str(error).splitlines()[0].partition(": ")[2]
    response = getattr(error, "response", None)
    return type(error).__name__ if response is None else f"HTTP {response.status_code}"


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
