"""Functions of libm, computed without a call."""
