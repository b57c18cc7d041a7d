"""What compiled code runs in: the kernel interface, Program, compilers, kept builds, and the training loop.

Code generation is not here. It is in `straight` (row by row) and `rerolled` (recovered loops).
"""
