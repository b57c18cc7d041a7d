"""Compiling ML models to C for fun: the sessions with Values, their operands and their order."""

from micrograd.engine import Value

a, b, c = Value(2), Value(3), Value(4)
d = (a + b) * c
print(d)
print(*sorted(d._prev, key=lambda v: -v.data))
print(d._op)
w = Value(2)
x = 1 + w
y = 3 * w
print(x + y)
print(*(Value(1) * Value(2)).topo())  # the post prints 3 for the product
