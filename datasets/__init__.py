"""Training data, as buffers: nothing here knows an engine or a workload.

Rows are kept in `bytes`, `memoryview` or `array`, never in lists: a list of a million floats is a million objects that
CPython's garbage collector walks again and again, and that makes micrograd as published up to eight times slower.
"""

from datasets.dataset import Buffer, Dataset, Unavailable

__all__ = ["Buffer", "Dataset", "Unavailable"]
