"""Training over rows of several lengths, and with optimisers other than plain descent.

`engines/compile.py` compiles one graph, whose kernel has a loop over rows and plain descent. Here, `prepare` compiles
the graph of each length of a row, `trainer` holds their kernels, `conductor` takes steps over them in Python, and
`in_c` does so in C: `conduct.c` calls the passes of the kernels, and an update that `in_c` writes from the optimiser's
expressions.

A kernel may order its parameters as it likes in its own workspace. The parameters, their gradients and the optimiser's
numbers have one order here, so one update serves all kernels.
"""
