"""micrograd's conventions where mathematics leaves the gradient open, as literal numbers of the reference.

`test_every_op.py` compares the reference with derivatives, which are not defined at a kink, and `test_bits.py` compares
the other engines with the reference.
"""

import math

import pytest

from tests.engines.graphs import bits
from zoomgrad import engines

INF, NAN = math.inf, math.nan
CASES = {
    "relu": (lambda a: a.relu(), [((0.0,), 0.0, (0.0,)), ((5e-324,), 5e-324, (1.0,)), ((NAN,), NAN, (0.0,))]),
    "relu's gradient is a multiplication": (lambda a: a.relu() * INF, [((-1.0,), NAN, (NAN,))]),
    "max": (lambda a, b: a.max(b), [((2.0, 1.0), 2.0, (1.0, 0.0)), ((1.0, 2.0), 2.0, (0.0, 1.0))]),
    "a tie of max goes right": (lambda a, b: a.max(b), [((2.0, 2.0), 2.0, (0.0, 1.0))]),
    "max of NaN": (lambda a, b: a.max(b), [((NAN, 1.0), 1.0, (0.0, 1.0)), ((1.0, NAN), NAN, (0.0, 1.0))]),
    "max gives the other operand nothing": (lambda a, b: a.max(b) * INF, [((2.0, 1.0), INF, (INF, 0.0))]),
    "both operands": (lambda a: a * a, [((3.0,), 9.0, (6.0,))]),
    "both operands of max": (lambda a: a.max(a), [((3.0,), 3.0, (1.0,))]),
}


@pytest.mark.parametrize("engine", ["baseline", "tuple"])
@pytest.mark.parametrize("name", CASES)
def test_a_convention(name, engine):
    function, cases = CASES[name]
    for numbers, data, gradients in cases:
        leaves = [engines.load(engine).Value(x) for x in numbers]
        out = function(*leaves)
        out.backward()
        assert bits([out.data, *(v.grad for v in leaves)]) == bits([data, *gradients])
