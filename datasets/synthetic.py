"""Seeded uniform rows: of any width, for growth curves, or with targets that one kind of model can learn."""

import math
import random
from array import array
from collections.abc import Callable, Sequence

from zoomgrad.datasets.dataset import Dataset

ROWS = 1000
SEED = 1337


def load(width: int, targets: int) -> Dataset:
    """1,000 rows of `width` features and `targets` targets, all uniform in [-1, 1)."""
    rng = random.Random(SEED)
    features = array("d", (rng.uniform(-1, 1) for _ in range(ROWS * width)))
    wanted = array("d", (rng.uniform(-1, 1) for _ in range(ROWS * targets)))
    return Dataset(f"synthetic-{width}x{targets}", features, width, 1.0, wanted, 0, targets, ROWS)


def series(steps: int, width: int) -> Dataset:
    """Steps of `width` numbers, one after the other. The target is a fading memory of the first number of each."""

    def memory(row: Sequence[float]) -> float:
        kept = 0.0
        for x in row[::width]:
            kept = 0.7 * kept + 0.7 * x
        return kept

    return _learnable(f"series-{steps}x{width}", steps * width, memory)


def signal(channels: int, length: int) -> Dataset:
    """Channels of `length` numbers, one after the other. The target is how far the first channel exceeds the second.

    It compares each place of the first channel with the next place of the second, sums the positive differences, and
    subtracts their expected value.
    """

    def above(row: Sequence[float]) -> float:
        differences = [row[place] - row[length + place + 1] for place in range(length - 1)]
        return sum(max(0.0, difference) - 1 / 3 for difference in differences) / math.sqrt(length)

    return _learnable(f"signal-{channels}x{length}", channels * length, above)


def tokens(count: int, width: int) -> Dataset:
    """Tokens of `width` numbers, one after the other. The target is a mean of their second numbers.

    The weights are a softmax of the first numbers, so the token with the largest first number counts most.
    """

    def asked(row: Sequence[float]) -> float:
        shares = [math.exp(2.0 * x) for x in row[::width]]
        return 2.0 * sum(share * x for share, x in zip(shares, row[1::width])) / sum(shares)

    return _learnable(f"tokens-{count}x{width}", count * width, asked)


def surface(points: int) -> Dataset:
    """Points (x, y). The target is the height of a wavy surface there."""
    return _learnable(f"surface-{points}", 2, lambda row: math.sin(3.0 * row[0]) * math.cos(2.0 * row[1]), points)


def products(width: int) -> Dataset:
    """Rows of numbers. The target is the tanh of the sum of the products of neighbours."""
    return _learnable(f"products-{width}", width, lambda row: math.tanh(sum(a * b for a, b in zip(row, row[1:]))))


def _learnable(name: str, width: int, target: Callable[[Sequence[float]], float], rows: int = ROWS) -> Dataset:
    rng = random.Random(SEED)
    features = array("d", (rng.uniform(-1, 1) for _ in range(rows * width)))
    # Round, because the last digits of sin, exp and tanh differ between libms, and sums of floats between Pythons.
    wanted = array("d", (round(target(features[row * width : (row + 1) * width]), 6) for row in range(rows)))
    return Dataset(name, features, width, 1.0, wanted, 0, 1, rows)
