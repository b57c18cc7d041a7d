"""MNIST: $ZOOMGRAD_DATA -> cache -> Dataset.

Only this module knows the hashes of the four files and the place of the cache. A file enters the cache only complete
and verified, under a name that contains its hash. Each read verifies it again, which takes 25 ms for 47 MB, because a
flipped byte would change what is trained and measured. `datasets.fetch` downloads the files, and workers don't import
it.
"""

import os
from pathlib import Path
from typing import NamedTuple, Optional

from zoomgrad.datasets import idx
from zoomgrad.datasets.dataset import Dataset, Unavailable
from zoomgrad.engines import files

REMEDY = "Run `python -m zoomgrad.datasets.fetch` online, or point ZOOMGRAD_DATA at a folder with the four files."


class File(NamedTuple):
    """One of the four published files. Size and SHA-256 refer to the decompressed bytes."""

    name: str
    size: int
    sha256: str

    @property
    def cached_name(self) -> str:
        """Name in the cache."""
        return f"{self.name}-{self.sha256[:8]}"

    @property
    def spellings(self) -> "tuple[str, ...]":
        """Common names of the file: `train-images-idx3-ubyte` and `train-images.idx3-ubyte`, gzip'd or raw."""
        dotted = self.name.replace("-idx", ".idx")
        return (f"{self.name}.gz", self.name, f"{dotted}.gz", dotted)


class Split(NamedTuple):
    """The two files of a split."""

    images: File
    labels: File


TRAIN = Split(
    File("train-images-idx3-ubyte", 47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    File("train-labels-idx1-ubyte", 60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
)
TEST = Split(
    File("t10k-images-idx3-ubyte", 7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    File("t10k-labels-idx1-ubyte", 10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)


def load() -> Dataset:
    """Read the 60,000 training rows.

    Raises Unavailable, and CorruptData for a wrong file in the cache or $ZOOMGRAD_DATA.
    """
    dataset = _load("mnist", TRAIN)
    return dataset._replace(train_rows=dataset.rows)


def load_test() -> Dataset:
    """Read the 10,000 rows of the test set, all held out. Raises as `load` does."""
    return _load("mnist-test", TEST)


def locate(file: File) -> Path:
    """Return the path of `file` in the cache, copying it from $ZOOMGRAD_DATA if needed. Raises as `load` does."""
    path = find(file)
    if path is None:
        data = os.environ.get("ZOOMGRAD_DATA")
        or_in = f"in ZOOMGRAD_DATA ({data})" if data else "is ZOOMGRAD_DATA set"
        raise Unavailable(f"mnist: {file.name} is not in the cache ({cache_folder()}), nor {or_in}", REMEDY)
    return path


def find(file: File) -> Optional[Path]:
    """Return the path as `locate` does, or None if the file is in neither place."""
    path = cache_folder() / file.cached_name
    if os.path.lexists(path):
        return path
    data = os.environ.get("ZOOMGRAD_DATA", "")
    # Workers run in other folders, where a relative path would mean something else.
    if data and (not Path(data).is_absolute() or (os.path.lexists(data) and not Path(data).is_dir())):
        remedy = "Point it at the folder with the four files, by an absolute path."
        raise Unavailable(f"mnist: ZOOMGRAD_DATA ({data}) is not an absolute path of a folder", remedy)
    for candidate in (Path(data, spelling) for spelling in file.spellings) if data else ():
        # A file that exists but can't be read is an error, not a reason to try the next name.
        if os.path.lexists(candidate):
            return admit(file, candidate)
    return None


def admit(file: File, candidate: Path) -> Path:
    """Verify that `candidate`, gzip'd or raw, is a copy of `file`, and put it into the cache. Returns its path there.

    Raises CorruptData for any other content, and Unavailable if the cache can't be written.
    """
    content = idx.read(_source(file, candidate))
    try:
        folder = cache_folder()
        # Two calls, because mkdir does not apply its mode to parents that it creates.
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        files.write_atomically(folder / file.cached_name, content, mode=0o600)
        return folder / file.cached_name
    except OSError as error:
        raise Unavailable(
            f"mnist: the cache {cache_folder()} can't be written ({error.strerror or error})",
            "Point ZOOMGRAD_CACHE at a writable folder.",
        ) from error


def cache_folder() -> Path:
    """Return `mnist` in the folder of all caches. It may not exist yet. Raises Unavailable if there is none."""
    folder = files.cache_folder("mnist", of_data=True)
    if folder is None:
        raise Unavailable(
            "mnist: there is no folder for a cache: ZOOMGRAD_CACHE is a relative path, or HOME is not set",
            "Point ZOOMGRAD_CACHE at a folder, by an absolute path.",
        )
    return folder


def _load(name: str, split: Split) -> Dataset:
    images, labels = (_source(file, locate(file)) for file in split)
    return idx.load(name, images, labels, divisor=255.0, train_rows=0)


def _source(file: File, path: Path) -> idx.Source:
    remedy = f"Delete {path} and run `python -m zoomgrad.datasets.fetch`, or point ZOOMGRAD_DATA at a whole copy."
    return idx.Source(path, "mnist", remedy, file.size, file.sha256)
