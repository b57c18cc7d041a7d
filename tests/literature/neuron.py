"""MicroGrad, Reeed's blog: a tanh neuron, backward node by node and at once, and a Value that is used twice."""

from micrograd.engine import Value

x1, x2 = Value(2.0, label="x1"), Value(0.0, label="x2")
w1, w2 = Value(-3.0, label="w1"), Value(1.0, label="w2")
n = x1 * w1 + x2 * w2 + Value(6.8813735870195432, label="b")
o = n.tanh()
order = o.topo()
for run in ("by hand", "at once"):
    for v in order:
        v.grad = 0.0
    if run == "at once":
        o.backward()
    else:
        o.grad = 1.0
        for v in reversed(order):
            v._backward()
    print(run, f"{o.data:.4f}", *(f"{v.label} {v.grad:.4f}" for v in (x1, w1, x2, w2)))
a = Value(3.0)
b = a + a
b.backward()
print(f"{a.grad:g}")
