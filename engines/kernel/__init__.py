"""The parts that all compiled engines share: the kernel interface, Program, compilers, and the training loop.

Code generation is not here. It is in `straight` (row by row) and `rerolled` (recovered loops).
"""
