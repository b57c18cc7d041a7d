"""Exclusive or: the smallest data that needs a hidden layer."""

from array import array

from zoomgrad.datasets.dataset import Dataset


def load() -> Dataset:
    """All four rows: two inputs and one target, each 0.0 or 1.0."""
    return Dataset(
        name="xor",
        features=array("d", [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]),
        width=2,
        divisor=1.0,
        targets=array("d", [0.0, 1.0, 1.0, 0.0]),
        classes=0,
        target_width=1,
        train_rows=4,
    )
