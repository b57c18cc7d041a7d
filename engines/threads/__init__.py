"""A pool of threads for kernels that divide their work: the pool in C, and the Python that builds and loads it.

How a step is divided is not here; see `rerolled/rearrange/divided.py`.
"""
