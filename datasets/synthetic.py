"""Seeded uniform rows of any width, for growth curves."""

import random
from array import array

from datasets.dataset import Dataset

ROWS = 1000
SEED = 1337


def load(width: int, targets: int) -> Dataset:
    """1,000 rows of `width` features and `targets` targets, all uniform in [-1, 1)."""
    rng = random.Random(SEED)
    features = array("d", (rng.uniform(-1, 1) for _ in range(ROWS * width)))
    wanted = array("d", (rng.uniform(-1, 1) for _ in range(ROWS * targets)))
    return Dataset(f"synthetic-{width}x{targets}", features, width, 1.0, wanted, 0, targets, ROWS)
