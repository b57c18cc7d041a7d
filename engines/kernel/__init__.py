"""What all compiled engines share: the kernel interface, the Program over it, compilers, and the training loop.

Not here: what turns a graph into code. That is `straight` (row by row) and `rerolled` (recovered loops).
"""
