"""Tape -> Loops: find the loops that a scalar graph was unrolled from. No training and no back end here."""
