"""Engines over recovered loops: `recover` loops from the tape, `rearrange` the training `step`, `emit` C or NumPy.

Tracing and the tape are elsewhere (`graph`), as are machine code (`machine`), compilers and training (`kernel`).
"""
