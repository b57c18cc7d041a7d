"""Sections on the machines of a run."""
