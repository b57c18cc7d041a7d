"""Step -> C or NumPy. The back ends print or run a step; they decide nothing about it."""
