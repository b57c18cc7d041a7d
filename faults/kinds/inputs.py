"""Damaged files and run folders: each is accepted, or refused by an error of ours that names it. Nothing else.

The parts: MNIST's file format, raw and packed; the files of a run, each by itself; whole run folders, of which a sample
goes through the report.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from datasets import idx
from datasets.idx import CorruptData
from faults.kinds import Batch
from faults.mutate import damage_bytes, damage_json
from faults.tally import Tally
from harness.interpreters import ROOT
from reports import build
from results.files import Unreadable, read
from results.noise import Noise
from results.profile import PROFILE
from results.record import Record, Run, Vouching
from results.store import Store

NAME = "inputs"
FAULTS = "damaged IDX files, records, plans, vouchings, profiles and run folders; some folders go through the report"
UNIT = "a damaged file or folder"
TRIES = 2000
BATCHES = 50
SECONDS = 900.0

ITEM_SECONDS = 10.0
"""From here on an input hangs its reader."""
REPORT_SECONDS = 120.0
REPORT_EVERY = 500
FOLDER_EVERY = 4
"""Of the inputs: a whole run folder; and of these, one in REPORT_EVERY / FOLDER_EVERY is reported."""
MOST_BYTES = 3 << 30
"""Of this process: a reader that a small file leads to allocate more has no bound."""


class TooLong(BaseException):
    """The alarm went off. No reader may catch it."""


def lacks() -> str:
    """Why it can't run here; empty where it can."""
    return "" if sys.platform != "win32" else "Windows has no alarm signal"


def run(batch: Batch, tally: Tally) -> None:
    """Damaged inputs, each from the next sample in turn."""
    _limit_memory()
    signal.signal(signal.SIGALRM, _too_late)
    files = list(_files())
    folders = [RunFolder(folder) for folder in sorted((ROOT / "results" / "reference").iterdir()) if folder.is_dir()]
    for number in range(TRIES):
        rng = batch.rng(number)
        place = batch.folder / "input"
        where = f"input {number}"
        if number % FOLDER_EVERY == 0:
            # Batches report other folders than their neighbours do.
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
    """Accepted, or refused by an error of ours; all else is counted."""
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
    """What is damaged, whole, and who reads it. IDX files come often, so that half of all files are theirs."""
    pixels, labels = bytes(range(256)) * 3, bytes(range(10)) * 2
    images_file = idx.encode_images(pixels, 8, 8)
    labels_file = idx.encode_labels(labels)
    samples: list[tuple[str, bytes, Callable[[Path], Any]]] = [
        ("images", images_file, _read_images),
        ("packed images", gzip.compress(images_file, mtime=0), _read_images),
        ("labels", labels_file, _read_labels),
        ("packed labels", gzip.compress(labels_file, mtime=0), _read_labels),
    ]
    reference = ROOT / "results" / "reference"
    models: list[tuple[str, str, Any]] = [
        ("run.json", "*/run.json", Run),
        ("a record", "*/records/*--0.json", Record),
        ("a vouching", "*/vouching/*.json", Vouching),
    ]
    found: list[tuple[str, bytes, Callable[[Path], Any]]] = []
    for name, pattern, model in models:
        for path in sorted(reference.glob(pattern))[:6]:
            found.append((name, path.read_bytes(), partial(_read_as, model)))
    profiles = {path.stem.rpartition("--")[2]: path for path in sorted(reference.glob("*/profiles/*--*.json"))}
    for path in profiles.values():
        found.append(("a profile", path.read_bytes(), partial(_read_as, PROFILE)))
    noise = (
        b'{"machine": {"processor": "x"}, "created_at": "2026-11-22T07:27:58Z", '
        b'"runs": ["2026-11-22T072758-smoke", "b"], "floors": {"tcc/cpython-3.13/xor": 0.01}}'
    )
    found.append(("noise.json", noise, partial(_read_as, Noise)))
    yield from found
    yield from samples * max(1, len(found) // len(samples))


def _damaged(name: str, content: bytes, rng: random.Random) -> bytes:
    if content[:1] == b"{" and rng.random() < 0.7:
        return damage_json(content.decode(), rng).encode("utf-8", "surrogatepass")
    if name.startswith("packed") and rng.random() < 0.5:
        # Whole as a packed file, damaged inside; now and then much longer than it looks.
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
    """A committed run, cut down to some of its files, to be copied and damaged."""

    MOST_FILES = 6
    """Of each part: a report of hundreds of records takes seconds."""

    def __init__(self, folder: Path) -> None:
        run = json.loads((folder / "run.json").read_bytes())
        self.parts = {
            part: {path.name: path.read_bytes() for path in sorted((folder / part).glob("*.json"))}
            for part in ("records", "vouching", "profiles")
        }
        self.run = run
        self.marker = {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith(".zoomgrad")}

    def damaged(self, place: Path, rng: random.Random, reported: bool) -> None:
        """Write a sample of it, damaged. reported: gently, so that the report gets to see most of it."""
        files = {"run.json": json.dumps(self.run).encode(), **self.marker}
        for part, there in self.parts.items():
            chosen = rng.sample(sorted(there), min(len(there), self.MOST_FILES))
            files |= {f"{part}/{name}": there[name] for name in chosen}
        for name in rng.sample(sorted(files), 1 if reported else rng.randrange(4)):
            # Bytes that are damaged are refused almost always; values that are odd may be accepted.
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
    """Now and then something that is no file is in a file's place, or a file has another's name."""
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
    """All that commands read of a run; and its report."""
    store = Store(place)
    _ = store.run
    store.records()
    store.vouchings()
    store.profiles()
    _ = store.looker
    if reported:
        build.build(store)
