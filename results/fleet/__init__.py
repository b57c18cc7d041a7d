"""Runs of several machines: the store of a fleet's run, its hosts by type, and runs merged into one."""
