"""Standalone builds: C of one graph that works without this project, as a Python module or as a library for C.

The commands that make folders of it are in `harness/standalone`.
"""
