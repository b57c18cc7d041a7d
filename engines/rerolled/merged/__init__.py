"""Steps of several graphs -> one kernel for all of them.

The graphs of a family, such as those of names of different lengths, differ in the counts and places of their loops, and
hardly in the loops themselves. `places` gives all of them the same areas, `align` finds the loops that correspond, and
`merge` writes them as one list of loops. A number that differs from graph to graph becomes a column of a table with a
row for each graph. `emit/c_merged.py` prints the C: the loops read their numbers from the row of the current graph.

Example: the forward loops of graphs with five and with eight inputs,

    v[0] = sum(t<5: x[t] * p[t])                v[0] = sum(t<8: x[t] * p[t])
    v[1] = v[0] * 0.2                           v[1] = v[0] * 0.125

merge to

    v[0] = sum(t<c0: x[t] * p[t])               graph  c0     d0
    v[1] = v[0] * d0                            0       5    0.2
                                                1       8  0.125

Graphs that can't be merged, for example because they skip zeros, get kernels of their own.
"""
