"""What compiled code runs in: the kernel interface, Program, compilers, kept objects, and the training loop.

Code generation is not here. It is in `straight` (row by row) and `rerolled` (recovered loops).
"""
