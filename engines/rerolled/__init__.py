"""Engines over recovered loops: `recover` loops from the tape, `rearrange` the training `step`, `emit` C or NumPy.

Tracing and the tape are not here (`graph`), and neither are compilers and the training loop (`kernel`).
"""
