"""Evidence of a training: its losses, gradients and parameters, for drills and stretches, and how it is stored.

A *stretch* is the first n steps of a workload's training, where n is a power of two, from one of several *starts*.
Start 0 is the workload's own. The others have parameters that differ a little, so that no two timed stretches are the
same work, or another first row if the workload does not learn.

A *drill* is a short training that reaches paths of a kernel that a stretch may miss: updates after single rows, groups
of rows that a batch cuts short, data that wraps around within a group. An engine that vouches for others writes its
evidence of both into a folder. The evidence of every other engine is compared with it.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Callable, NamedTuple

from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.training import Trainer
from zoomgrad.harness.procedure import DRILLS, MOST_STARTS, START_STEP, Drill, every_shape, most_bounded_steps
from zoomgrad.harness.worker.job import DamagedEvidence
from zoomgrad.harness.workloads import Workload


class Evidence(NamedTuple):
    """Loss of every step, gradients of a partial batch, and parameters after a training."""

    losses: array[float]
    gradients: array[float]
    parameters: array[float]


def drills(workload: Workload) -> tuple[Drill, ...]:
    """The drills of a workload, the most important first."""
    return (every_shape(len(workload.shapes())), *DRILLS) if workload.varies else DRILLS


def drill(trainer: Trainer, workload: Workload, how: Drill) -> Evidence:
    """Train as the drill says. If that diverges, the evidence holds only the losses so far."""
    trainer.restart(batch=how.batch, rows=how.rows and min(how.rows, workload.rows))
    try:
        for steps in how.pieces:
            trainer.train(steps)
    except NonFiniteLoss:
        return Evidence(array("d", trainer.losses), array("d"), array("d"))
    return left_by(trainer)


class Starts:
    """Takes a trainer to a start: 0 is the workload's own, and each other number differs from all the others."""

    def __init__(self, trainer: Trainer, workload: Workload) -> None:
        self._trainer = trainer
        self._workload = workload
        trainer.restart(batch=workload.batch)
        self._own = array("d", trainer.parameters())

    def begin(self, start: int) -> Callable[[], None]:
        """Return a function that restarts there. Making it prepares the numbers, so that a clock can begin between."""
        trainer, batch = self._trainer, self._workload.batch
        if not start:
            return partial(trainer.restart, batch=batch)
        if not self._workload.learns:  # its weights may be constants
            return partial(trainer.restart, batch=batch, first=start)
        # A parameter of 0 changes by a thousandth of what a parameter of 1 would.
        parameters = array("d", (p + start * START_STEP * (p or 1e-3) for p in self._own))
        return partial(trainer.restart, batch=batch, parameters=parameters)


def name_of(steps: int, start: int = 0) -> str:
    """Name of a stretch's evidence: `512`, or `3x512` from start 3."""
    return f"{start}x{steps}" if start else str(steps)


def stretches(
    trainer: Trainer, workload: Workload, *, seconds: float, steps: int, starts: int
) -> Iterator[tuple[str, Evidence]]:
    """Yield (name, evidence) of stretches from start 0, then from others. A training that diverges ends there.

    From start 0, each stretch is twice as long as the one before. The first is one step, however long that takes. The
    last one is the longest that is expected to end in time and has at most `steps` steps. The first `starts` others
    train as far, so that an engine can choose any length. Further ones have one length and an eighth of the time,
    because only engines whose stretches are limited need more stretches than values. Without other starts it takes
    about `seconds`, else half as long again: an engine that confirms the evidence takes start 0 only.
    """
    places, reached = Starts(trainer, workload), 0

    def doubled(start: int, first: int, most: int, limit: float = math.inf) -> Iterator[tuple[str, Evidence]]:
        places.begin(start)()
        clock, taken = perf_counter(), 0
        with suppress(NonFiniteLoss):
            while not taken or (taken < most and 2 * (perf_counter() - clock) <= limit):
                trainer.train(taken or first)
                taken = len(trainer.losses)
                yield name_of(taken, start), left_by(trainer)

    for name, evidence in doubled(0, 1, steps, 1.5 * seconds / (1 + starts) if starts else seconds):
        reached = max(reached, longest([name]))
        yield name, evidence
    if not starts or not reached:
        return
    for start in range(1, starts + 1):
        yield from doubled(start, 1, reached)
    limited, until = power_of_two(min(reached, most_bounded_steps(workload.batch))), perf_counter() + seconds / 8
    for start in range(starts + 1, MOST_STARTS + 1):
        if perf_counter() <= until:
            yield from doubled(start, limited, limited)


def power_of_two(most: int) -> int:
    """The largest power of two that is at most `most`."""
    return 1 << (most.bit_length() - 1)


def left_by(trainer: Trainer) -> Evidence:
    """Evidence of the training so far, copied: an engine's own array may compute its numbers when it is read."""
    return Evidence(array("d", trainer.losses), array("d", trainer.gradients()), array("d", trainer.parameters()))


def compare(actual: Evidence, reference: Evidence) -> tuple[float, str]:
    """Return the largest |x - reference| / max(1, |reference|), and a description of the first difference or "".

    The comparison is of bits, with two exceptions: NaN equals NaN, and 0.0 equals -0.0.
    """
    worst, first = 0.0, ""
    for part, values, expected in zip(Evidence._fields, actual, reference):
        if len(values) != len(expected):
            return math.inf, f"{len(values)} {part} instead of {len(expected)}"
        if values.tobytes() == expected.tobytes():
            continue
        for index, (x, y) in enumerate(zip(values, expected)):
            if x == y or (x != x and y != y):
                continue
            first = first or f"{part}[{index}] is {x!r} instead of {y!r}"
            finite = math.isfinite(x) and math.isfinite(y)
            worst = max(worst, abs(x - y) / max(1.0, abs(y)) if finite else math.inf)
    return worst, first


# --- the folder ----------------------------------------------------------------------------------------------------

_OF_START = re.compile(r"([1-9]\d*)x(\d+)")


def write_evidence(folder: Path, evidence: Iterable[tuple[str, Evidence]]) -> None:
    """Write each piece of evidence to `NAME.doubles`, in place of the folder's earlier evidence.

    A file has the lengths of the three parts, and their numbers, as doubles in this machine's byte order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.doubles"):
        old.unlink()
    for name, parts in evidence:
        content = b"".join(part.tobytes() for part in (array("d", map(len, parts)), *parts))
        (folder / f"{name}.doubles").write_bytes(content)


def longest(names: Iterable[str]) -> int:
    """Steps of the longest stretch among names of evidence; 0 if there is none."""
    return max((int(name) for name in names if name.isdigit()), default=0)


class Witness:
    """Evidence in a folder, read piece by piece into arrays, so that the garbage collector has nothing to traverse.

    Raises DamagedEvidence if there is none, because an engine that is compared with nothing is not proven.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = frozenset(path.stem for path in folder.glob("*.doubles"))
        if not self._names:
            raise DamagedEvidence(f"{folder} holds no evidence\n  Resume the run, which makes it again.")
        self.steps = longest(self._names)
        """Steps of the longest stretch."""

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def starts(self, steps: int) -> list[int]:
        """Starts other than 0 with a stretch of that length, in order."""
        matches = (_OF_START.fullmatch(name) for name in self._names)
        return sorted(int(match[1]) for match in matches if match and int(match[2]) == steps)

    def check(self) -> None:
        """Read all pieces. Raises DamagedEvidence."""
        for name in self._names:
            self.evidence(name)

    def evidence(self, name: str) -> Evidence:
        """Evidence of the drill or stretch of that name. Raises DamagedEvidence."""
        file = self._folder / f"{name}.doubles"
        numbers, parts, at = array("d"), [], len(Evidence._fields)
        try:
            numbers.frombytes(file.read_bytes())
            for length in map(int, numbers[:at]):
                parts.append(numbers[at : at + length])
                at += length
            if at != len(numbers):
                raise ValueError(f"holds {len(numbers):,} numbers instead of {at:,}")
            return Evidence(*parts)
        except (OSError, MemoryError, ValueError, OverflowError, TypeError) as error:
            raise DamagedEvidence(
                f"{file.parent.name}/{file.name}: {error}\n"
                "  Remove the run's evidence folder, then resume the run, which makes it again."
            ) from None
