"""Five rows for the tour of micrograd, in which a 3-[4,4,1] net learns all rows in one graph."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Sequence
from typing import Optional

from zoomgrad.datasets.dataset import Dataset

ROWS, WIDTH = 5, 3

Row = tuple[Sequence[int], int]
"""Features and target."""

# tanh and relu can both reach these targets, and the rows are small enough that a relu net from seed 1337 survives.
FIXED: tuple[Row, ...] = (
    ((1, 0, -1), 1),
    ((0, 1, 1), 0),
    ((1, 1, 0), 1),
    ((-1, 0, 1), 0),
    ((0, -1, 1), 0),
)


def load(*, seed: Optional[int] = None) -> Dataset:
    """Five rows of three small integers, as doubles, each with a target: the fixed rows, or new ones from that seed."""
    rows = FIXED if seed is None else tuple(_drawn(random.Random(seed)))
    return Dataset(
        name="tour",
        features=array("d", [feature for features, _ in rows for feature in features]),
        width=WIDTH,
        divisor=1.0,
        targets=array("d", [target for _, target in rows]),
        classes=0,
        target_width=1,
        train_rows=len(rows),
    )


def _drawn(rng: random.Random) -> Iterable[Row]:
    """Features from -3 to 3 and targets from -1 to 1, drawn as the tour draws them: all features first."""
    features = [[round(rng.uniform(-3.0, 3.0)) for _ in range(WIDTH)] for _ in range(ROWS)]
    return zip(features, [round(rng.uniform(-1.0, 1.0)) for _ in range(ROWS)])
