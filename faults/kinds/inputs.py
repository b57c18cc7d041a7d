"""Damaged files and run folders. Each must be accepted, or refused with one of our errors that names it.

Inputs are IDX files (MNIST's format), raw and compressed, single files of a run, and whole run folders. The report is
built from a sample of the folders.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from datasets import idx
from datasets.idx import CorruptData
from faults.kinds import Batch
from faults.mutate import damage_bytes, damage_json
from faults.runs import as_files
from faults.tally import Tally
from reports import build
from results.files import Unreadable, read
from results.places import ROOT
from results.profile import PROFILE
from results.record import Record, Run, Vouching
from results.run_file import SUFFIX, Snapshot, pack, unpack
from results.store import Store

NAME = "inputs"
FAULTS = "damaged IDX files, records, plans, vouchings, profiles and run folders; the report is built from some folders"
UNIT = "a damaged file or folder"
TRIES = 2000
BATCHES = 50
SECONDS = 900.0

ITEM_SECONDS = 10.0
"""A reader that takes longer hangs."""
REPORT_SECONDS = 120.0
REPORT_EVERY = 500
FOLDER_EVERY = 4
"""One input in FOLDER_EVERY is a run folder. One folder in REPORT_EVERY / FOLDER_EVERY goes through the report."""
MOST_BYTES = 3 << 30
"""Memory limit of this process. A reader that allocates more for a small file has no bound."""


class TooLong(BaseException):
    """The alarm went off. A BaseException, so that no reader catches it."""


def lacks() -> str:
    """Why it can't run here; empty if it can."""
    return "" if sys.platform != "win32" else "Windows has no alarm signal"


def run(batch: Batch, tally: Tally) -> None:
    """Damage random samples and read them."""
    _limit_memory()
    signal.signal(signal.SIGALRM, _too_late)
    files = list(_files())
    folders = [RunFolder(run) for run in _committed()]
    for number in range(TRIES):
        rng = batch.rng(number)
        place = batch.folder / "input"
        where = f"input {number}"
        if number % FOLDER_EVERY == 0:
            # Each batch reports different folders.
            reported = (number + batch.index * FOLDER_EVERY) % REPORT_EVERY == 0
            rng.choice(folders).damaged(place, rng, reported)
            _check(
                tally,
                f"{where}, a run folder",
                REPORT_SECONDS if reported else ITEM_SECONDS,
                _read_run,
                place,
                reported,
            )
            shutil.rmtree(place, ignore_errors=True)
        else:
            name, content, reader = rng.choice(files)
            place.write_bytes(_damaged(name, content, rng))
            _check(tally, f"{where}, {name}", ITEM_SECONDS, reader, place)
            place.unlink()
        tally.tries += 1


def _check(tally: Tally, where: str, seconds: float, reader: Callable[..., Any], *arguments: Any) -> None:
    """Read the input. Count everything except acceptance and refusal with one of our errors."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        reader(*arguments)
    except (CorruptData, Unreadable):
        pass
    except TooLong:
        tally.count("hangs", f"{where}: took longer than {seconds:g} s")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        at = traceback.extract_tb(error.__traceback__)[-1]
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if str(ROOT) in frame.filename][-1]
        places = f"{Path(ours.filename).name}:{ours.lineno}, {Path(at.filename).name}:{at.lineno}"
        tally.count("crashes", f"{where}: {type(error).__name__}: {str(error)[:200]!r} ({places})")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _too_late(number: int, frame: object) -> None:
    raise TooLong


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


# --- single files ----------------------------------------------------------------------------------------------------


def _files() -> Iterator[tuple[str, bytes, Callable[[Path], Any]]]:
    """(name, undamaged content, reader) of each sample. IDX files repeat, so that half of all files are IDX files."""
    pixels, labels = bytes(range(256)) * 3, bytes(range(10)) * 2
    images_file = idx.encode_images(pixels, 8, 8)
    labels_file = idx.encode_labels(labels)
    samples: list[tuple[str, bytes, Callable[[Path], Any]]] = [
        ("images", images_file, _read_images),
        ("packed images", gzip.compress(images_file, mtime=0), _read_images),
        ("labels", labels_file, _read_labels),
        ("packed labels", gzip.compress(labels_file, mtime=0), _read_labels),
    ]
    committed = _committed()
    files = [(path, content) for run in committed for path, content in sorted(as_files(run).items())]
    models: list[tuple[str, str, Any]] = [
        ("run.json", "run.json", Run),
        ("a record", "records/*--0.json", Record),
        ("a vouching", "vouching/*.json", Vouching),
    ]
    found: list[tuple[str, bytes, Callable[[Path], Any]]] = []
    for name, pattern, model in models:
        for content in [content for path, content in files if fnmatchcase(path, pattern)][:6]:
            found.append((name, content, partial(_read_as, model)))
    for content in {path.rpartition("--")[2]: content for path, content in files if "profiles/" in path}.values():
        found.append(("a profile", content, partial(_read_as, PROFILE)))
    for run in committed:
        found.append(("a packed run", pack(run.model_copy(update={"records": run.records[:6]})), unpack))
    yield from found
    yield from samples * max(1, len(found) // len(samples))


def _committed() -> list[Snapshot]:
    return [unpack(path) for path in sorted((ROOT / "results" / "baseline_runs").glob(f"*{SUFFIX}"))]


def _damaged(name: str, content: bytes, rng: random.Random) -> bytes:
    if content[:1] == b"{" and rng.random() < 0.7:
        return damage_json(content.decode(), rng).encode("utf-8", "surrogatepass")
    if name == "a packed run" and rng.random() < 0.5:
        lines = lzma.decompress(content).splitlines(keepends=True)
        which = rng.randrange(len(lines))
        lines[which] = _damaged("a line", lines[which], rng)
        return lzma.compress(b"".join(lines))
    if name.startswith("packed") and rng.random() < 0.5:
        # A valid compressed file with damaged content, which is sometimes far longer than its size suggests.
        inner = damage_bytes(gzip.decompress(content), rng)
        return gzip.compress(inner + bytes(1 << 27 if rng.random() < 0.002 else 0), 1, mtime=0)
    return damage_bytes(content, rng)


def _read_as(model: Any, path: Path) -> None:
    read(path, model)


def _source(path: Path) -> idx.Source:
    return idx.Source(path, "damaged", "Nothing.")


def _read_images(path: Path) -> None:
    images = idx.read_images(_source(path))
    assert len(images.pixels) == images.rows * images.width


def _read_labels(path: Path) -> None:
    assert max(idx.read_labels(_source(path))) < 10


# --- run folders -----------------------------------------------------------------------------------------------------


class RunFolder:
    """A committed run, reduced to some of its files, as a source of damaged copies."""

    MOST_FILES = 6
    """Files of each part, because a report on hundreds of records takes seconds."""

    def __init__(self, run: Snapshot) -> None:
        files = as_files(run)
        self.whole = {"run.json": files.pop("run.json")}
        self.parts = [
            {path: content for path, content in files.items() if path.startswith(part)}
            for part in ("records/", "vouching/", "profiles/")
        ]

    def damaged(self, place: Path, rng: random.Random, reported: bool) -> None:
        """Write a damaged sample of it. reported: damage it only a little, so that the report gets past the readers."""
        files = dict(self.whole)
        for part in self.parts:
            files |= {name: part[name] for name in rng.sample(sorted(part), min(len(part), self.MOST_FILES))}
        for name in rng.sample(sorted(files), 1 if reported else rng.randrange(4)):
            # Readers refuse damaged bytes almost always, but may accept odd values.
            files[name] = _structure(files[name], rng) if reported else _damaged(name, files[name], rng)
        for name, content in files.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if not reported:
            _disturb(place, sorted(files), rng)


def _structure(content: bytes, rng: random.Random) -> bytes:
    if content[:1] != b"{":
        return content
    return damage_json(content.decode(), rng).encode("utf-8", "surrogatepass")


def _disturb(place: Path, names: list[str], rng: random.Random) -> None:
    """Sometimes replace a file by something that is not a file, or give it another name."""
    if rng.random() < 0.6:
        return
    path = place / rng.choice(names)
    other = place / rng.choice(names)
    how = rng.randrange(9)
    if how == 0:
        path.unlink()
    elif how == 1:
        path.unlink()
        path.mkdir()
    elif how == 2:
        path.unlink()
        path.symlink_to(other if other != path else place / "nowhere")
    elif how == 3:
        path.unlink()
        path.symlink_to(path)
    elif how == 4:
        path.unlink()
        os.mkfifo(path)
    elif how == 5:
        shutil.copyfile(other, path.with_name("another.json")) if other.is_file() else None
    elif how == 6:
        path.rename(path.with_name("\udcff--\x1b[31m--x.json"))
    elif how == 7:
        path.write_bytes(b"")
    else:
        shutil.rmtree(path.parent)
        path.parent.write_bytes(b"{}")


def _read_run(place: Path, reported: bool) -> None:
    """Read everything that commands read of a run. reported: build the report too."""
    store = Store(place)
    _ = store.run
    store.records()
    store.vouchings()
    store.profiles()
    _ = store.looker
    if reported:
        build.build(store)
