"""Handwritten C for an MLP of two layers, as a good engineer would write it: same losses, same bits.

There is no Value graph here, so these engines run whole models only. `kernel` compiles and trains them.
"""
