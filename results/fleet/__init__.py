"""Runs of several machines: the store of a fleet's run, and its hosts by type."""
