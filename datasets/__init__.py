"""Training data as buffers, one module per dataset. Engines and workloads are not here, and nothing here imports them.

Rows are `bytes`, `memoryview` or `array`, never lists. A list of a million floats is a million objects, which CPython's
garbage collector walks again and again. That makes published micrograd up to eight times slower.
"""

from zoomgrad.datasets.dataset import Buffer, Dataset, Unavailable

__all__ = ["Buffer", "Dataset", "Unavailable"]
