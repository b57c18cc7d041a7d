"""Engines that walk the graph in Python, one variant per file. The diff between two files is the experiment.

Compiled engines are not here, and neither are the operators that all Values share (`engines.value_base`).
"""
