"""Engines that walk the graph in Python, one per file. The diff, or the text given to `changed`, is the experiment.

Compiled engines are not here, and neither are the operators that all Values share (`engines.value_base`).
"""
