"""The `Dataset` class, and the datasets that need no download: xor, tour, moons, the synthetic ones and digits."""

import hashlib
import struct

import pytest

from zoomgrad.datasets import digits, moons, synthetic, tour, xor


def digest(dataset):
    numbers = [*dataset.features, *dataset.targets]
    return hashlib.sha256(struct.pack(f"<{len(numbers)}d", *numbers)).hexdigest()


WITHOUT_FILES = {
    "xor": (xor.load(), "d8c8907b570d718819c9f4646371b5c840c8446fa8c553257759e9560a81be18"),
    "tour": (tour.load(), "2953fd0e7190faf161eb38e7e764d836778894cb97466d6b570d3b0416cc6fbc"),
    "moons": (moons.load(), "20c4d960a3b75cad81cc06f4e229de4c7da94d5d787aff1d31f3f65b5ba874e0"),
    "series": (synthetic.series(steps=20, width=4), "2affc3a5452faf6a2b333685f6843de39957e7ea2350d85e5136a1196b03679d"),
    "signal": (
        synthetic.signal(channels=4, length=32),
        "3d80b361e0bd7ae1c7ef0873014775a563d063b21626a2291d32010d45f3ba4b",
    ),
    "tokens": (synthetic.tokens(count=8, width=8), "79d9e104f8c71d6428933d2c9cbb7fc97d8aebfe1febcb91eb94d27023d510ef"),
    "surface": (synthetic.surface(points=100), "34ba4236c8d92fd4667b81324aa97d7f5634796f66f9fd3e9829aa0b8bcef850"),
    "products": (synthetic.products(width=4), "d20fb37bcc8831d5eb77e47b061c86155f0497fbefc408f60159e109004df63f"),
}


@pytest.mark.parametrize("name", WITHOUT_FILES)
def test_datasets_without_files_are_the_same_bytes_everywhere(name):
    dataset, expected = WITHOUT_FILES[name]
    assert digest(dataset) == expected
    assert dataset.features.typecode == dataset.targets.typecode == "d"
    assert dataset.rows == dataset.train_rows == len(dataset.targets)


def test_digits_match_ucis_description():
    """The pinned hash proves that nothing changed; UCI's class counts (optdigits.names) prove that it is right."""
    dataset = digits.load()
    counts = [bytes(dataset.targets).count(label) for label in range(10)]
    assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert bytes(dataset.features[:8]) == bytes([0, 0, 5, 13, 9, 1, 0, 0])
    assert (dataset.rows, dataset.width, dataset.train_rows, dataset.divisor) == (1797, 64, 1437, 16.0)


@pytest.mark.parametrize("row", [-1, 4])
def test_inputs_refuse_a_row_out_of_range(row):
    with pytest.raises(IndexError) as caught:
        xor.load().inputs(row)
    assert str(caught.value) == f"xor: row {row} is not one of its 4 rows, 0 to 3"
