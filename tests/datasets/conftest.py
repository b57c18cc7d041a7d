"""A small MNIST for tests: four files of a few bytes with matching hashes, and an empty cache."""

import gzip
import hashlib

import pytest

from tests.datasets.encoding import encode_images, encode_labels
from zoomgrad.datasets import mnist


class SmallMnist:
    """Replaces the published files. Tests point ZOOMGRAD_DATA at `folder`; the reader caches the files in `cache`."""

    def __init__(self, folder, cache):
        self.folder = folder
        self.cache = cache
        self.contents = {}

    def publish(self, name, content):
        self.contents[name] = content
        return mnist.File(name, len(content), hashlib.sha256(content).hexdigest())

    def give(self, *, packed=True, spell=lambda name: name):
        """Put all four into `folder`."""
        for name, content in self.contents.items():
            path = self.folder / (spell(name) + (".gz" if packed else ""))
            path.write_bytes(gzip.compress(content) if packed else content)

    def cached(self):
        return sorted(path.name for path in self.cache.glob("mnist/*"))


@pytest.fixture
def small(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    small = SmallMnist(tmp_path / "data", tmp_path / "cache")
    for split, prefix, rows in (("TRAIN", "train", 3), ("TEST", "t10k", 2)):
        images = encode_images(bytes(range(rows * 4)), 2, 2)
        labels = encode_labels(bytes(range(9, 9 - rows, -1)))
        files = mnist.Split(
            small.publish(f"{prefix}-images-idx3-ubyte", images), small.publish(f"{prefix}-labels-idx1-ubyte", labels)
        )
        monkeypatch.setattr(mnist, split, files)
    monkeypatch.setenv("ZOOMGRAD_CACHE", str(small.cache))
    monkeypatch.delenv("ZOOMGRAD_DATA", raising=False)
    return small
