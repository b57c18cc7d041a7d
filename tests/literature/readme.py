"""micrograd's README: one expression with every operator, its value and two gradients."""

from micrograd.engine import Value

a, b = Value(-4.0), Value(2.0)
c, d = a + b, a * b + b**3
c += c + 1
c += 1 + c + (-a)
d += d * 2 + (b + a).relu()
d += 3 * d + (b - a).relu()
e = c - d
f = e**2
g = f / 2.0
g += 10.0 / f
g.backward()
print(f"{g.data:.4f} {a.grad:.4f} {b.grad:.4f}")
