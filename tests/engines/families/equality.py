"""Compare trainings with the interpreter's, bit by bit: `python -m tests.engines.families.equality [WORKLOAD]`.

The interpreter is `native`, whose Value is in C, because that of `tuple` takes minutes. `--tuple STEPS` compares the
two first. Each engine trains alone, then it predicts every held-out name.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
from array import array
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import NamedTuple, Optional

import engines
from engines.api import Trainer
from engines.kernel import object_cache
from harness import workloads
from harness.workloads import Workload

ENGINES = ("tcc", "rerolled-tcc", "rerolled-gcc", "rerolled-clang")


class Trained(NamedTuple):
    """What a training leaves."""

    losses: array[float]
    parameters: array[float]
    gradients: array[float]
    held_out: Optional[float]
    """Mean loss of the held-out rows."""
    seconds: float

    def differences(self, other: Trained) -> list[str]:
        """What differs from another training of as many steps, bit by bit."""
        named = zip(self._fields[:3], self[:3], other[:3])
        found = [_place(name, ours, theirs) for name, ours, theirs in named if ours.tobytes() != theirs.tobytes()]
        if None not in (self.held_out, other.held_out) and self.held_out != other.held_out:
            found.append(f"held-out loss {self.held_out!r} and {other.held_out!r}")
        return found

    def __str__(self) -> str:
        digest = hashlib.sha256(b"".join(part.tobytes() for part in self[:3])).hexdigest()[:16]
        held_out = "" if self.held_out is None else f", held-out loss {self.held_out!r}"
        return f"last loss {self.losses[-1]!r}{held_out}, SHA-256 {digest}, {self.seconds:.3g} s"


def _place(name: str, ours: Sequence[float], theirs: Sequence[float]) -> str:
    at = next(i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1])
    return f"{name} from {at:,} on: {ours[at]!r} and {theirs[at]!r}"


def trained(name: str, workload: Workload, steps: int, *, evaluate: bool) -> Trained:
    """Train with that engine. Raises Unavailable."""
    engine = engines.load(name)
    engine.check()
    trainer = engine.prepare(workload, objects=object_cache.of_user())
    start = perf_counter()
    if name == "tuple":
        _train_with_cycles(trainer, steps)
    else:
        trainer.train(steps)
    seconds = perf_counter() - start
    held_out = workload.evaluation_loss(trainer.predict) if evaluate else None
    return Trained(trainer.losses, trainer.parameters(), trainer.gradients(), held_out, seconds)


def _train_with_cycles(trainer: Trainer, steps: int) -> None:
    """Train with graphs that only the collector frees. It would walk them again and again while they grow."""
    gc.disable()
    try:
        for _ in range(steps):
            trainer.train(1)
            gc.collect()
    finally:
        gc.enable()


def compared(workload: Workload, steps: int, names: Sequence[str], interpreted: int) -> Iterator[tuple[str, bool]]:
    """Yield a line for each training, and whether it has the interpreter's bits."""
    if interpreted:
        few = trained("tuple", workload, interpreted, evaluate=False)
        yield f"{'tuple':14} {interpreted:,} steps: {few}", True
        yield _compared("native", trained("native", workload, interpreted, evaluate=False), few)
    first = trained("native", workload, steps, evaluate=True)
    yield f"{'native':14} {steps:,} steps: {first}", True
    for name in names:
        yield _compared(name, trained(name, workload, steps, evaluate=True), first)


def _compared(name: str, ours: Trained, theirs: Trained) -> tuple[str, bool]:
    found = ours.differences(theirs)
    verdict = f"DIFFERS: {'; '.join(found)}" if found else f"equal, {ours.seconds:.3g} s"
    return f"{name:14} {len(ours.losses):,} steps: {verdict}", not found


def main() -> int:
    """Print the comparison. Returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", nargs="?", default="microgpt")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--tuple", type=int, default=20, metavar="STEPS", help="0 leaves it out")
    given = parser.parse_args()
    workload, differ = workloads.load(given.workload), False
    for line, equal in compared(workload, given.steps, given.engines.split(","), given.tuple):
        print(line, flush=True)
        differ |= not equal
    return int(differ)


if __name__ == "__main__":
    raise SystemExit(main())
