"""Handwritten C for an MLP of two layers, as a good engineer would write it: same losses, same bits."""
