"""Training over rows of several lengths, and with optimisers other than plain descent.

`engines/compile.py` compiles one graph, whose kernel has a loop over rows and plain descent. Here, `prepare` compiles
the graph of each length of a row, `trainer` holds their kernels, and `conductor` takes steps over them in Python.
`in_machine_code` takes the same steps in machine code, over kernels whose functions have addresses. For the update,
`lanes` makes statements over vectors from the optimiser's expressions, and `lanes_in_machine_code` writes instructions.

The parameters, their gradients and the optimiser's numbers have one order, so one update serves all kernels. Kernels of
recovered loops share a workspace, in which parameters and gradients stay: the loops of the largest graph choose their
places, and the loops of other lengths use the same ones. All other kernels copy parameters and gradients for each row.
"""
