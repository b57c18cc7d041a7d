"""MicroGrad, Reeed's blog: backpropagation by hand, a call for each node, and the graph as Graphviz reads it."""

from micrograd.engine import Value, draw_dot

a = Value(2.0, label="a")
b = Value(-3.0, label="b")
c = Value(10.0, label="c")
e = a * b
e.label = "e"
d = e + c
d.label = "d"
f = Value(-2.0, label="f")
loss = d * f
loss.label = "L"
loss.grad = 1.0
loss._backward()
d._backward()
e._backward()
for v in (loss, f, d, c, e, b, a):
    print(v.label, f"{v.data:g} {v.grad:g}")
drawing = str(draw_dot(loss))
print(all(f"{{ {v.label} | " in drawing for v in (a, b, c, d, e, f, loss)))
