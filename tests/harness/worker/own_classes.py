"""Classes like Value, as programs define them, for the tests of `exec`.

`CLOSURES` is the class of the video, `NUMBERS` that of microgpt. A test changes one thing in a text.
"""

BACKWARD = """
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
"""
CLOSURES = f"""
import math


class Value:
    def __init__(self, data, _children=(), _op="", label=""):
        self.data = data
        self.grad = 0.0
        self._prev = set(_children)
        self._backward = lambda: None
        self._op = _op
        self.label = label

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        t = (math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad += (1 - t**2) * out.grad

        out._backward = _backward
        return out

    __radd__, __rmul__ = __add__, __mul__
{BACKWARD}
"""
SUMS = "for child, slope in zip(v._prev, v._local_grads):\n                child.grad += slope * v.grad"
NUMBERS = f"""
import math


class Value:
    __slots__ = ("data", "grad", "_prev", "_local_grads")

    def __init__(self, data, children=(), local_grads=()):
        self.data, self.grad, self._prev, self._local_grads = data, 0, children, local_grads

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def relu(self):
        return Value(max(0, self.data), (self,), (float(self.data > 0),))

    def log(self):
        return Value(math.log(self.data), (self,), (1 / self.data,))

    def sin(self):
        return Value(math.sin(self.data), (self,), (math.cos(self.data),))
{BACKWARD.replace("1.0", "1").replace("v._backward()", SUMS)}
"""
USE = """
a, b = Value(0.3), Value(-1.2)
c = a * b + a * 2.0
d = c * c + a
d.backward()
print(a.data, a.grad, b.grad, c.data, c.grad, d.data, d.grad, type(d.grad).__name__)
"""
