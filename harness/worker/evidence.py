"""What a training leaves behind, and where it lies: losses, gradients and parameters, of drills and of stretches.

A *stretch* is the first n steps of a workload's training, n a power of two: what a timed value trains, once or several
times. A *drill* is a short training that takes a kernel through what a stretch may not meet: updates after single rows,
groups of rows that a batch cuts short, data that wrap around within a group. An engine that vouches for others writes
its evidence of both into a folder; every other engine's is compared with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Optional

from engines.api import NonFiniteLoss, Trainer, Workload
from harness.worker.job import DamagedEvidence, write_json


class Evidence(NamedTuple):
    """What a training left: the loss of every step, the gradients of a batch that is not full, the parameters."""

    losses: array[float]
    gradients: array[float]
    parameters: array[float]


class Drill(NamedTuple):
    """A short training from the start, with a batch and rows of its own."""

    name: str
    batch: int
    rows: Optional[int]
    """The data set is cut to so many rows; None: it is whole."""
    pieces: tuple[int, ...]
    """Steps of each call of `train`, so that a call begins and ends within a batch, too."""


SHORT = Drill("short", 2, None, (3,))
"""An update, and a step after it that leaves its gradients: all that a slow engine can be asked for."""

DRILLS = (
    SHORT,
    Drill("single", 1, 3, (1, 4, 2)),
    # Two groups of 4 rows fill a batch; the second call begins within one.
    Drill("whole", 8, 5, (9, 11)),
    # A group, two rows that the batch cuts off; the last group has rows 4, 5, 6 and 0.
    Drill("ragged", 6, 7, (5, 1, 17)),
)

MOST_STEPS = 1 << 18
"""Of a stretch. Engines that take less than a microsecond a step repeat it."""


DIVERGES = "diverges"
"""Name of the evidence of a training that met a loss that is not finite: the losses before it, and nothing else."""


def drill(trainer: Trainer, workload: Workload, how: Drill) -> Evidence:
    """Train as the drill says. If that diverges, there are no gradients and parameters, and fewer losses."""
    there = workload.columns()[0].rows
    trainer.restart(batch=how.batch, rows=None if how.rows is None else min(how.rows, there))
    try:
        for steps in how.pieces:
            trainer.train(steps)
    except NonFiniteLoss:
        return _diverged(trainer)
    return left_by(trainer)


def stretches(
    trainer: Trainer, *, batch: int, seconds: float, steps: int = MOST_STEPS
) -> Iterator[tuple[str, Evidence]]:
    """The evidence of ever longer stretches, each the one before and as many steps again, under their lengths.

    The first is one step, however long it takes. No stretch follows that would make it longer than `seconds` or
    `steps` steps. A training that diverges ends with that evidence.
    """
    trainer.restart(batch=batch)
    start, taken = perf_counter(), 0
    while not taken or (taken < steps and 2 * (perf_counter() - start) <= seconds):
        try:
            trainer.train(max(1, taken))
        except NonFiniteLoss:
            yield DIVERGES, _diverged(trainer)
            return
        taken = len(trainer.losses)
        yield str(taken), left_by(trainer)


def _diverged(trainer: Trainer) -> Evidence:
    return Evidence(array("d", trainer.losses), array("d"), array("d"))


def left_by(trainer: Trainer) -> Evidence:
    """What the training so far has left."""
    return Evidence(array("d", trainer.losses), trainer.gradients(), trainer.parameters())


def compare(found: Evidence, reference: Evidence) -> tuple[float, str]:
    """The largest |x - reference| / max(1, |reference|), and where the first difference is ("" where none is).

    Bits are compared, with two freedoms: NaN equals NaN, and the sign of zero is free.
    """
    worst, first = 0.0, ""
    for part, ours, theirs in zip(Evidence._fields, found, reference):
        if len(ours) != len(theirs):
            return math.inf, f"{len(ours)} {part} instead of {len(theirs)}"
        if ours.tobytes() == theirs.tobytes():
            continue
        for index, (x, y) in enumerate(zip(ours, theirs)):
            if x == y or (x != x and y != y):
                continue
            first = first or f"{part}[{index}] is {x!r} instead of {y!r}"
            finite = math.isfinite(x) and math.isfinite(y)
            worst = max(worst, abs(x - y) / max(1.0, abs(y)) if finite else math.inf)
    return worst, first


# --- the folder ----------------------------------------------------------------------------------------------------

INDEX = "index.json"
"""Written last: a folder without it is one that nobody finished. Lengths and SHA-256 of each piece of evidence."""

MOST_INDEX_BYTES = 1 << 20
_NAME = re.compile(r"[a-z0-9]{1,20}")


def write_evidence(folder: Path, evidence: Iterable[tuple[str, Evidence]]) -> list[str]:
    """Write each piece of evidence under its name; gives the names. Doubles as they lie in memory: this machine's."""
    folder.mkdir(parents=True, exist_ok=True)
    index: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(FileNotFoundError):
        (folder / INDEX).unlink()
    for name, parts in evidence:
        content = b"".join(part.tobytes() for part in parts)
        (folder / f"{name}.doubles").write_bytes(content)
        index[name] = {"lengths": [len(part) for part in parts], "sha256": hashlib.sha256(content).hexdigest()}
    write_json(str(folder / INDEX), index)
    return list(index)


def longest(names: Iterable[str]) -> int:
    """Steps of the longest stretch among the names of evidence; 0 where there is none."""
    return max((int(name) for name in names if name.isdigit()), default=0)


class Witness:
    """The evidence in a folder, read piece by piece: arrays, which no garbage collector walks while others are timed.

    Raises FileNotFoundError where nobody finished it, and DamagedEvidence where it is not what was written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index = _read_index(folder / INDEX)

    def __contains__(self, name: str) -> bool:
        return name in self._index

    @property
    def steps(self) -> int:
        """Of the longest stretch."""
        return longest(self._index)

    @property
    def diverges_at(self) -> float:
        """The step whose loss is not finite; infinity where the training did not get there."""
        return self._index[DIVERGES][0][0] if DIVERGES in self._index else math.inf

    def check(self) -> None:
        """Read all of it. Raises DamagedEvidence."""
        for name in self._index:
            self.evidence(name)

    def evidence(self, name: str) -> Evidence:
        """That drill's, or that of the stretch of so many steps. Raises DamagedEvidence."""
        if name not in self._index:
            raise _damaged(self._folder / INDEX, f"has nothing of {name!r}")
        lengths, digest = self._index[name]
        file = self._folder / f"{name}.doubles"
        try:
            with file.open("rb") as opened:
                # No more than there should be, however much there is.
                content = opened.read(8 * sum(lengths) + 1)
        except (OSError, MemoryError) as error:
            raise _damaged(file, f"can't be read: {error}") from None
        if len(content) != 8 * sum(lengths) or hashlib.sha256(content).hexdigest() != digest:
            raise _damaged(file, "is not what was written")
        doubles = array("d")
        doubles.frombytes(content)
        ends = [sum(lengths[: number + 1]) for number in range(len(lengths))]
        return Evidence(*(doubles[end - length : end] for length, end in zip(lengths, ends)))


def _read_index(file: Path) -> dict[str, tuple[list[int], str]]:
    """Lengths and digest by name. Raises FileNotFoundError, and DamagedEvidence."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_INDEX_BYTES + 1)
        index: Any = json.loads(content) if len(content) <= MOST_INDEX_BYTES else None
    except (ValueError, RecursionError):
        index = None
    found: dict[str, tuple[list[int], str]] = {}
    for name, piece in index.items() if isinstance(index, dict) else [("", None)]:
        lengths = piece.get("lengths") if isinstance(piece, dict) else None
        digest = piece.get("sha256") if isinstance(piece, dict) else None
        is_right = (
            _NAME.fullmatch(name)
            and isinstance(lengths, list)
            and len(lengths) == len(Evidence._fields)
            and all(type(length) is int and 0 <= length < 1 << 32 for length in lengths)
        )
        if not is_right or not isinstance(lengths, list) or not isinstance(digest, str):
            raise _damaged(file, "is not an index of evidence")
        found[name] = (lengths, digest)
    return found


def _damaged(file: Path, how: str) -> DamagedEvidence:
    return DamagedEvidence(
        f"{file.parent.name}/{file.name} {how}\n"
        "  Remove the run's evidence folder, then resume the run: it is made again."
    )
