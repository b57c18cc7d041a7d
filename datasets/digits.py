"""UCI's optical recognition of handwritten digits: real images, embedded in the repository.

Only this module knows where the embedded files are and what they must hold. `datasets/data/README.md` gives their
source and licence.
"""

from pathlib import Path

from zoomgrad.datasets import idx
from zoomgrad.datasets.dataset import Dataset

LARGEST_VALUE = 16.0
IMAGES_PATH = Path(__file__).with_name("data") / "digits-images-idx3-ubyte.gz"
LABELS_PATH = Path(__file__).with_name("data") / "digits-labels-idx1-ubyte.gz"

# Hashes of the decompressed files, because the compressed bytes depend on the version of zlib.
IMAGES_SHA256 = "359cd13f0f514122884198b78a131df597421cbf5e93a76678fa96fc548f0d96"
LABELS_SHA256 = "ce71631c1f31ce56fa54f31d1d498fafacff59b001e6c30c4a5e29508aa277ad"

REMEDY = "Restore it with git."


def load() -> Dataset:
    """1,797 images of 8 x 8 pixels from 0 to 16, in the order of their source. The last 360 are held out."""
    images = idx.Source(IMAGES_PATH, "digits", REMEDY, 115_024, IMAGES_SHA256)
    labels = idx.Source(LABELS_PATH, "digits", REMEDY, 1_805, LABELS_SHA256)
    return idx.load("digits", images, labels, divisor=LARGEST_VALUE, train_rows=1437)
