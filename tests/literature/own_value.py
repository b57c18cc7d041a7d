"""MicroGrad, Reeed's blog: a program in one file that defines its Value itself."""

import math


class Value:
    def __init__(self, data, _children=(), _op="", label=""):
        self.data, self.grad, self.label = data, 0.0, label
        self._prev, self._op = set(_children), _op
        self._backward = lambda: None

    def __repr__(self):
        return f"Value(data={self.data:g})"

    def __add__(self, other):
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        out = Value(math.tanh(self.data), (self,), "tanh")

        def _backward():
            self.grad += (1 - out.data**2) * out.grad

        out._backward = _backward
        return out

    def backward(self):
        order, seen = [], set()

        def visit(v):
            if v not in seen:
                seen.add(v)
                for child in v._prev:
                    visit(child)
                order.append(v)

        visit(self)
        self.grad = 1.0
        for v in reversed(order):
            v._backward()


a, b, c = Value(2.0), Value(-3.0), Value(10.0)
print(a * b + c)
o = (a * b + Value(6.8813735870195432)).tanh()
o.backward()
print(f"{o.data:.4f} {a.grad:.4f} {b.grad:.4f}")
