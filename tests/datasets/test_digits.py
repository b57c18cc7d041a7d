"""The embedded digits equal UCI's."""

import pytest

from zoomgrad.datasets import digits


@pytest.fixture(scope="module")
def dataset():
    return digits.load()


def test_shape(dataset):
    assert (dataset.name, dataset.rows, dataset.width, dataset.train_rows) == ("digits", 1797, 64, 1437)
    assert (dataset.divisor, dataset.classes) == (16.0, 10)
    assert (min(dataset.features), max(dataset.features)) == (0, 16)


def test_content_matches_ucis_description(dataset):
    """The pinned hash proves that nothing changed; UCI's class counts (optdigits.names) prove that it is right."""
    counts = [bytes(dataset.targets).count(label) for label in range(10)]
    assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert bytes(dataset.features[:8]) == bytes([0, 0, 5, 13, 9, 1, 0, 0])
