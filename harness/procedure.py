"""Numbers of the measuring procedure, shared by the plan's estimates and the workers. Worker-safe."""

from __future__ import annotations

from typing import NamedTuple, Optional

TRUSTED = "tuple"
"""The engine that vouches for the candidates."""
CANDIDATES = ("tcc", "clang-O0", "gcc-O0", "python-source", "bytecode")
"""The first two that run here vouch for all other engines."""

TRUSTED_SECONDS = 4.0
TRUSTED_STEPS = 1024
"""Limits on `tuple`'s training: in seconds, unless a candidate's time is shorter, and in steps."""

REPEAT_SECONDS = 600.0
"""A cell whose worker took longer, because a compiler takes minutes, is measured in one block: an interval would cost
hours."""

JIT_SECONDS = 2.0
"""Training time on an interpreter with a JIT before the steps of a value are counted. On PyPy, a step of `baseline` on
`xor` takes 1 ms at first and 36 µs after 1.5 s. If the steps were counted while cold, a value would last only
milliseconds and would still include warm-up."""


class Drill(NamedTuple):
    """A short training from the starting parameters, with its own batch and rows."""

    name: str
    batch: int
    rows: Optional[int]
    """Number of rows to keep of the data set; None keeps all."""
    pieces: tuple[int, ...]
    """Steps of each call of `train`: a call may begin or end within a batch."""


DRILLS = (
    # An update, then a step that leaves gradients. Slow engines have no time for more.
    Drill("short", 2, None, (3,)),
    Drill("single", 1, 3, (1, 4, 2)),
    # A tile of 8 rows, or tiles of 6 and 2, fill a batch. The second call begins within a batch.
    Drill("whole", 8, 5, (9, 11)),
    # A batch is tiles of 6 or 8 rows and of 2, and a row, which wrap around.
    Drill("ragged", 11, 7, (5, 1, 17)),
)


def every_shape(count: int) -> Drill:
    """A step on the first row of each of so many shapes: their losses, and the sum of their gradients.

    A data set with rows of several lengths begins with a row of each.
    """
    return Drill("shapes", count + 1, count, (count,))


MOST_STEPS = 1 << 18
"""Longest stretch, in steps. Engines that take less than a microsecond per step take several for a value."""

MOST_STARTS = 48
"""Most stretches that differ. No two timed ones are the same work, so this limits the stretches of a value."""

START_STEP = 2.0**-12
"""Relative distance between the parameters of two starts: small, so that trainings are similar, but not identical."""

MOST_BOUNDED_STEPS = 256
"""Longest stretch of an engine that declares an error bound. Training is chaotic: on `mnist`, the different rounding of
`rerolled-clang-fast` grows to 3e-12 in 256 steps, 1e-9 in 1,024, and 9 in 8,192."""

MOST_BOUNDED_BATCHES = 16
"""In large batches, its stretch may be this many batches instead. Errors grow from one update to the next."""


def most_bounded_steps(batch: int) -> int:
    """Longest stretch, in steps, of an engine that declares an error bound."""
    return max(MOST_BOUNDED_STEPS, MOST_BOUNDED_BATCHES * batch)
