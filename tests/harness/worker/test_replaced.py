"""A class that the engine's Value replaces: its gradient rules are used or refused, its operations mean the same."""

import math

import pytest

from tests.engines.ladder import of_each_value
from tests.harness.worker.test_execute import execute
from zoomgrad.engines.interpreted.tuple import Value
from zoomgrad.harness.worker.programs import probe

LOCAL = """
import math

class Value:
    def __init__(self, data, children=(), local_grads=()):
        self.data, self.grad, self._children, self._local_grads = data, 0, children, local_grads

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def relu(self):
        return leaky(self)

    def backward(self):
        order, seen = [], set()

        def visit(v):
            if v not in seen:
                seen.add(v)
                for child in v._children:
                    visit(child)
                order.append(v)

        visit(self)
        self.grad = 1
        for v in reversed(order):
            for child, slope in zip(v._children, v._local_grads):
                child.grad += slope * v.grad

    def sin(self):
        return Value(math.sin(self.data), (self,), (math.cos(self.data),))

    def again(self):
        return type(self)(math.sin(self.data), [self], local_grads=[math.cos(self.data)])

def twice(v):
    return Value(math.sin(v.data), children=(v, v), local_grads=(0.25, math.cos(v.data) - 0.25))

def leaky(v):
    return Value(v.data if v.data > 0 else 0, (v,), (1.0 * (v.data > 0),))
"""


@pytest.mark.parametrize("engine", of_each_value())
def test_local_gradients_of_a_programs_own_operation_are_used(tmp_path, engine):
    text = "\nfor f in (Value.sin, Value.again, twice):\n    a = Value(0.5)\n    (f(a) * 2).backward()\n"
    text += "    print(a.grad)\n"
    ran = execute(engine, tmp_path, LOCAL + text, replaced="Value")
    if engine in ("baseline", "tuple", "slots", "hoisted", "replay", "native") or ran.returncode == 0:
        assert (ran.stdout, ran.stderr) == (f"{2 * math.cos(0.5)}\n" * 3, "")
    else:  # it has no backward functions, or permits no subclass
        assert ran.stdout == ""


RULES = {
    "a function": """
    def __init__(self, data, prev=(), backward=None):
        self.data, self.grad, self._prev, self._backward = data, 0.0, prev, backward or (lambda g: None)
    def sin(self):
        return Value(math.sin(self.data), (self,), lambda g: None)  # here
    """,
    "a function without operands": """
    def __init__(self, data, send=lambda g: None):
        self.data, self.grad, self.send = data, 0.0, send
    def sin(self):
        return Value(math.sin(self.data), lambda g: self.backward(g * math.cos(self.data)))  # here
    """,
    "an object": """
    def __init__(self, data, prev=(), creator=None):
        self.data, self.grad, self._prev, self.creator = data, 0.0, prev, creator
    def sin(self):
        return Value(math.sin(self.data), prev=[self], creator=object())  # here
    """,
    "operands one by one": """
    def __init__(self, data, left=None, right=None, dleft=0.0, dright=0.0):
        self.data, self.grad, self.left, self.right, self.dleft, self.dright = data, 0.0, left, right, dleft, dright
    def sin(self):
        return Value(math.sin(self.data), self, None, math.cos(self.data))  # here
    """,
    "a dictionary": """
    def __init__(self, data, slopes=None):
        self.data, self.grad, self.slopes = data, 0.0, slopes
    def sin(self):
        return Value(math.sin(self.data), {self: math.cos(self.data)})  # here
    """,
    "an operation's name that is none": """
    def __init__(self, data, children=(), op=None):
        self.data, self.grad, self.children, self.op = data, 0.0, children, op
    def sin(self):
        return Value(math.sin(self.data), (self,), math.sin)  # here
    """,
    "too few derivatives": """
    def __init__(self, data, children=(), slopes=()):
        self.data, self.grad, self.children, self.slopes = data, 0.0, children, slopes
    def sin(self):
        return Value(math.sin(self.data), (self, self), (math.cos(self.data),))  # here
    """,
    "an attribute of the result": """
    def __init__(self, data, _children=()):
        self.data, self.grad, self._prev, self.slopes = data, 0.0, _children, ()
    def sin(self):
        out = Value(math.sin(self.data), (self,))  # here
        out.slopes = (math.cos(self.data),)
        return out
    """,
    "the operation's name": """
    def __init__(self, data, _children=(), _op=""):
        self.data, self.grad, self._prev, self._op = data, 0.0, _children, _op
    def step(self):
        if self._op == "sin":
            self._prev[0].grad += math.cos(self._prev[0].data) * self.grad
    def sin(self):
        return Value(math.sin(self.data), (self,), "sin")  # here
    """,
}


@pytest.mark.parametrize("engine", ["native", "hoisted"])
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_a_value_cannot_use_is_refused_with_its_line(tmp_path, engine, rule):
    text = f"import math\nclass Value:{RULES[rule]}\na = Value(0.5)\nb = a.sin()\nb.backward()\nprint(a.grad)\n"
    line = 1 + text[: text.index("# here")].count("\n")
    ran = execute(engine, tmp_path, text, replaced="Value")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"zoomgrad: {tmp_path / 'program.py'}:{line}: ")
    assert "the gradient would be lost\n  Set `_backward`" in ran.stderr


# --- operations ------------------------------------------------------------------------------------------------------


def variant(**methods):
    """Micrograd's Value with other methods. Sums and products are of that class, too."""

    def created(name):
        def operator(self, other):
            out = getattr(Value, name)(self, other)
            out.__class__ = Variant
            return out

        return operator

    Variant = type("Variant", (Value,), {**{name: created(name) for name in ("__add__", "__mul__")}, **methods})
    return Variant


def unary(compute, derivative):
    def method(self):
        out = Value(compute(self.data), (self,), "own")

        def _backward():
            self.grad += derivative(self.data) * out.grad

        out._backward = _backward
        return out

    return method


def earlier(self, other):
    """`max` that gives the gradient of equal operands to the first one."""
    other = other if isinstance(other, Value) else Value(other)
    return self * 1.0 if self.data >= other.data else other * 1.0


def from_zero(self):
    for v in self.topo():
        v.grad = 0
    Value.backward(self)


OTHER = {
    "relu": {
        "a slope at 0": unary(lambda x: max(x, 0.0), lambda x: x >= 0),
    },
    "log": {
        "clamped": unary(lambda x: math.log(max(x, 1e-10)), lambda x: 1 / max(x, 1e-10)),
    },
    "exp": {"clipped": unary(lambda x: math.exp(min(x, 20.0)), lambda x: math.exp(min(x, 20.0)))},
    "tanh": {"hard": unary(lambda x: max(-1.0, min(1.0, x)), lambda x: abs(x) < 1)},
    "sigmoid": {"without a derivative": unary(lambda x: 1 / (1 + math.exp(-x)), lambda x: 0.0)},
    "max": {"the first of equals": earlier},
    "/": {"with a small term": lambda a, b: a * (b + 1e-8) ** -1},
    "-": {"of magnitudes": lambda a, b: a + b * (-1 if (b.data if isinstance(b, Value) else b) > 0 else 1)},
    "**": {"with a gradient of the base": lambda a, k: unary(lambda x: x**k, lambda x: x)(a)},
    "backward": {"from zero": from_zero},
}
NAMES = {"/": "__truediv__", "-": "__sub__", "**": "__pow__"}


@pytest.mark.parametrize(
    ("name", "method"), [pytest.param(n, f, id=f"{n} {v}") for n, all_ in OTHER.items() for v, f in all_.items()]
)
def test_an_operation_with_another_meaning_differs(name, method):
    different = probe.differing(variant(**{NAMES.get(name, name): method}))
    assert name in different
    assert set(different) <= {name, "/", "-", "backward"}, "only what is derived from the operation may differ as well"


SAME = {
    "tanh": unary(
        lambda x: (math.exp(2 * x) - 1) / (math.exp(2 * x) + 1),
        lambda x: 1 - ((math.exp(2 * x) - 1) / (math.exp(2 * x) + 1)) ** 2,
    ),
    "sigmoid": unary(
        lambda x: 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x)),
        lambda x: math.exp(-abs(x)) / (1 + math.exp(-abs(x))) ** 2,
    ),
    "relu": unary(lambda x: max(0.0, x), lambda x: float(x > 0)),
    "__neg__": lambda a: unary(lambda x: -x, lambda x: -1)(a),
}


@pytest.mark.parametrize("name", SAME)
def test_another_formula_means_the_same(name):
    assert probe.differing(variant(**{name: SAME[name]})) == []


def test_a_class_with_other_operations_is_refused_and_named(tmp_path):
    text = LOCAL.replace("1.0 * (v.data > 0)", "v.data").replace(", (1, 1))", ", (1, 2))")
    ran = execute("native", tmp_path, text + "\nprint('ran')", replaced="Value")
    assert (ran.returncode, ran.stdout) == (2, "")
    first, second = ran.stderr.splitlines()
    assert first.startswith(f"zoomgrad: {tmp_path / 'program.py'}:4: a Value can't replace Value")
    assert first.endswith("something else there: +, relu, backward")
    assert "without --replace" in second
