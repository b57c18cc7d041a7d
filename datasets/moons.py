"""Two interleaved half circles, as in micrograd's demo, drawn here to avoid a dependency on scikit-learn.

The data is the same, byte for byte, on every interpreter and machine.
"""

import math
import random
from array import array

from zoomgrad.datasets.dataset import Dataset

POINTS_PER_MOON = 50
NOISE = 0.1
SEED = 1337


def load() -> Dataset:
    """100 shuffled points (x, y), labelled -1.0 on the outer half circle and +1.0 on the inner one."""
    rng = random.Random(SEED)
    angles = [math.pi * index / (POINTS_PER_MOON - 1) for index in range(POINTS_PER_MOON)]
    outer = [(math.cos(t), math.sin(t), -1.0) for t in angles]
    inner = [(1.0 - math.cos(t), 0.5 - math.sin(t), 1.0) for t in angles]
    points = [(_noisy(x, rng), _noisy(y, rng), label) for x, y, label in outer + inner]
    rng.shuffle(points)
    return Dataset(
        name="moons",
        features=array("d", [coordinate for x, y, _ in points for coordinate in (x, y)]),
        width=2,
        divisor=1.0,
        targets=array("d", [label for _, _, label in points]),
        classes=0,
        target_width=1,
        train_rows=len(points),
    )


def _noisy(coordinate: float, rng: random.Random) -> float:
    # Round, because the last digits of sin, cos and log differ between libms.
    return round(coordinate + rng.gauss(0.0, NOISE), 6)
