"""Loops recovered from the scalar tape: recover the loops, rearrange the training step, emit C or NumPy."""
