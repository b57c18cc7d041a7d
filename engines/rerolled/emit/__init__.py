"""Step -> C or NumPy: the back ends, which print or run a step, and the C files that are the same for every graph.

Decisions about a step are not here; `rearrange` makes them.
"""
