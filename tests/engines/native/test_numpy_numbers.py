"""Value in C holds NumPy's numbers as `tuple` does: the same bits, types, infinities and warnings."""

import random
import struct
import warnings

import pytest

from tests.engines.native.test_value_in_c import BINARY, UNARY, Value
from tests.examples import examples
from zoomgrad import engines
from zoomgrad.engines.graph.linearize import linearize

numpy = pytest.importorskip("numpy")
Reference = engines.load("tuple").Value

KINDS = (
    *(float, int, numpy.float64, numpy.float64, numpy.float64, numpy.array, numpy.float32, numpy.float16),
    *(numpy.longdouble, numpy.int64, numpy.int8, numpy.uint8, numpy.complex64),
)
SPECIAL = (0.0, 1.0, -1.0, 1e200, 1e-200, float("inf"), float("nan"), 700.0, 1e308)
UNARY_HERE = (*UNARY.values(), lambda a: a ** numpy.float32(2.5), lambda a: a ** numpy.int64(2))
BINARY_HERE = (*BINARY.values(), lambda a, b: b + a, lambda a, b: b - a, lambda a, b: b * a, lambda a, b: b / a)


def number(rng):
    x = rng.choice([rng.uniform(-3, 3), rng.uniform(-3, 3), rng.choice(SPECIAL), rng.randint(-3, 3)])
    try:
        with numpy.errstate(over="ignore"):
            return rng.choice(KINDS)(x)
    except (ValueError, OverflowError):  # the kind has no such number
        return numpy.float64(x)


def told(Class, seed):
    """Type and bits of every Value's data and gradient, what it prints, whether NumPy warns; or the error."""
    rng = random.Random(seed)
    values = [Class(number(rng)) for _ in range(3)]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            for _ in range(rng.randint(1, 8)):
                a, b, x = rng.choice(values), rng.choice(values), number(rng)
                operation = rng.choice([rng.choice(UNARY_HERE), rng.choice(BINARY_HERE)])
                values.append(operation(a) if operation in UNARY_HERE else operation(a, rng.choice([b, x])))
            values[-1].backward()
        except Exception as error:
            return type(error).__name__, str(error)
    numbers = [bits(each) for v in values for each in (v.data, v.grad)]
    return numbers, list(map(repr, values)), bool(warned)


def bits(x):
    """One zero, one NaN."""
    kind = "number" if type(x) in (float, int, numpy.float64, numpy.int64) else type(x).__name__
    if isinstance(x, (complex, numpy.complexfloating)) or (type(x) is int and abs(x) > 10**300):
        return kind, repr(x)
    return kind, "nan" if x != x else struct.pack(">d", float(x) + 0.0)


def test_random_programs_compute_what_tuple_computes():
    for seed in range(examples(1000)):
        expected, found = (str(told(Class, seed)).replace("-0.0", "0.0") for Class in (Reference, Value))
        assert found == expected, seed


@pytest.mark.parametrize(
    "array", [numpy.array([1.0, 2.0]), numpy.array([1.0]), numpy.array("text"), numpy.str_("text")]
)
def test_arrays_and_texts_are_refused(array):
    v = Value(1.0)
    for attempt in (lambda: Value(array), lambda: setattr(v, "data", array), lambda: v + array):
        with pytest.raises(TypeError):
            attempt()
    if array.dtype.kind == "f":
        with pytest.raises(TypeError, match=r"(?s)holds a number, not array.*such as `hoisted`"):
            v * array


def test_a_graph_with_them_is_recorded():
    x, w = Value(numpy.float32(0.5)), Value(numpy.float64(2.0))
    tape = linearize(x * w + numpy.float64(0.25) + numpy.float32(0.5), inputs=[x], parameters=[w])
    assert [type(constant) for constant in tape.constants] == [float, float]
    program = engines.load("python-source").compile(x * w + numpy.float32(0.5), inputs=[x], parameters=[w])
    assert program.forward() == 1.5
