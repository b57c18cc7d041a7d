"""Compiling ML models to C for fun: the sessions that print the C of each Value, forward and backward."""

from micrograd.engine import Value

z = Value(1) * Value(2)
for v in sorted(z.topo(), key=lambda v: v._id):
    print(v.compile())
Value(1) * Value(2)  # the post's session has three more Values here, which count for the ids
x = Value(1, _op="weight")
y = Value(2, _op="weight")
for v in sorted((x * y).topo(), key=lambda v: v._id):
    print(v.backward_compile())
