"""Value in C compared with `tuple`: the same numbers, the same printed text, the same words in errors."""

import copy
import gc
import math
import random
import struct
import sys
import warnings
import weakref
from fractions import Fraction
from numbers import Complex, Real

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.engines.compiled.compiling import tape_of
from tests.engines.graphs import random_graphs
from tests.examples import examples
from zoomgrad import engines
from zoomgrad.engines.api import CyclicGraph, Unavailable
from zoomgrad.engines.graph.linearize import linearize
from zoomgrad.engines.graph.value import Value as InPython

try:
    import numpy
except ImportError:
    numpy = None

Reference = engines.load("tuple").Value

try:
    Value = engines.load("native").Value
except Unavailable as reason:
    pytest.skip(reason.reason, allow_module_level=True)


# --- numbers, text and errors ----------------------------------------------------------------------------------------

BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "max": lambda a, b: a.max(b),
}
UNARY = {
    "negative": lambda a: -a,
    **{name: lambda a, name=name: getattr(a, name)() for name in ("relu", "tanh", "exp", "log", "sigmoid")},
    **{f"**{k}": lambda a, k=k: a**k for k in (2, 3, -1, 0.5, 0, 2.0, -2.5)},
}
SPECIAL = (
    2**27 + 1,
    2**53 - 1,
    2**53,
    2**53 + 1,
    -(2**53),
    2**70,
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    1e300,
    1e308,
    1e-200,
    700.0,
)
KINDS = {"of Python": (float, float, int)}
if numpy:
    KINDS["of NumPy"] = (
        *(float, int, numpy.float64, numpy.float64, numpy.float64, numpy.array, numpy.float32, numpy.float16),
        *(numpy.longdouble, numpy.int64, numpy.int8, numpy.uint8, numpy.complex64),
    )
    UNARY |= {f"**{k!r}": lambda a, k=k: a**k for k in (numpy.float32(2.5), numpy.int64(2))}


def number(rng, kinds):
    x = rng.choice([rng.uniform(-3, 3), rng.uniform(-3, 3), rng.choice(SPECIAL), rng.randint(-3, 3)])
    if kinds == KINDS["of Python"]:
        return x
    try:
        with numpy.errstate(all="ignore"):
            made = rng.choice(kinds)(x)
            return numpy.float64(x) if getattr(made, "dtype", "") == "object" else made
    except (ValueError, OverflowError):  # the kind has no such number
        return numpy.float64(x)


def told(Class, kinds, seed):
    """Types, bits and text of every Value before and after `backward`, and whether NumPy warns; or the error."""
    rng = random.Random(seed)
    values = [Class(number(rng, kinds)) for _ in range(3)]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            for _ in range(rng.randint(1, 8)):
                a, b, x = rng.choice(values), rng.choice(values), number(rng, kinds)
                operation = rng.choice([*BINARY.values(), *UNARY.values()])
                if operation in UNARY.values():
                    values.append(operation(a))
                else:
                    values.append(operation(*rng.choice([(a, b), (a, x), (x, a)])))
            forward = list(map(repr, values))
            values[-1].backward()
        except (ArithmeticError, ValueError, TypeError, AttributeError) as error:
            return type(error).__name__, str(error)
    numbers = [(v._op, len(v._prev), bits(v.data), bits(v.grad)) for v in values]
    return numbers, forward, list(map(repr, values)), bool(warned)


def bits(x):
    """One zero, one NaN."""
    kind = "number" if type(x).__name__ in ("float", "int", "float64", "int64") else type(x).__name__
    if (isinstance(x, Complex) and not isinstance(x, Real)) or (type(x) is int and abs(x) > 10**300):
        return kind, repr(x)
    return kind, "nan" if x != x else struct.pack(">d", float(x) + 0.0)


@pytest.mark.parametrize("kinds", KINDS)
def test_it_computes_and_prints_what_tuple_does(kinds):
    for seed in range(examples(2500)):
        expected, found = (str(told(Class, KINDS[kinds], seed)).replace("-0.0", "0.0") for Class in (Reference, Value))
        assert found == expected, seed


@pytest.mark.skipif(not numpy, reason="NumPy is not installed")
def test_a_graph_with_numbers_of_numpy_is_recorded():
    x, w = Value(numpy.float32(0.5)), Value(numpy.float64(2.0))
    loss = x * w + numpy.float64(0.25) + numpy.float32(0.5)
    assert [type(constant) for constant in linearize(loss, inputs=[x], parameters=[w]).constants] == [float, float]
    assert engines.load("python-source").compile(loss, inputs=[x], parameters=[w]).forward() == 1.75


OTHERS = ["1.5", None, [1.0], b"1", {}, True, Fraction(1, 3)]
if numpy:
    OTHERS += [numpy.array([1.0, 2.0]), numpy.array([1.0]), numpy.array("text"), numpy.str_("text")]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_data_are_any_objects(other):
    results = []
    for C in (Reference, Value):
        for use in (lambda a: a, lambda a: C(1.0) + a.data, lambda a: C(2) * a, lambda a: a.relu()):  # noqa: B023
            try:
                results.append(repr(use(C(other))))
            except Exception as error:
                results.append(repr(error))
    assert results[:4] == results[4:]
    v = Value(other)
    with pytest.raises(AttributeError, match="can't be deleted"):
        del v.data


def test_a_constant_that_no_double_holds_cannot_be_compiled():
    for constant in (10**400, "text"):
        with pytest.raises(ValueError, match="constants must be finite"):
            linearize(Value(constant))


# --- graphs ----------------------------------------------------------------------------------------------------------


def test_a_cycle_is_refused():
    a = Value(1.0)
    b = a + 1.0
    order = b.topo()
    a._prev = (b,)
    for use in (b.topo, b.backward, a.backward, lambda: linearize(b), lambda: copy.deepcopy(b)):
        with pytest.raises(CyclicGraph, match=r"cycle in the graph: .* is among its own operands\n  Undo the edit"):
            use()
    a._prev = (a,)
    with pytest.raises(CyclicGraph):
        a.topo()
    a._prev = ()
    assert b.topo() == order


def test_an_operation_of_unknown_name_keeps_all_operands():
    many = [Value(float(i)) for i in range(5)]
    v = Value(10.0, many, "sum", label="s")
    assert (v._prev, v._op, v.label) == (tuple(many), "sum", "s")
    v.backward()
    assert [m.grad for m in many] == [0] * 5
    hand_made = Value(2.0, (many[0], many[1]), "+")
    hand_made.backward()
    assert (hand_made._op, many[0].grad) == ("+", 0), "as in micrograd, only `_backward` gives it a gradient"
    v._backward = lambda: [setattr(m, "grad", v.grad) for m in many]
    v.backward()
    assert [m.grad for m in many] == [1] * 5
    square = many[3] ** 2
    with pytest.raises(TypeError, match=r"_children\[1\] is 3.0, not a Value"):
        square.__init__(1.0, (many[0], 3.0), "+")
    with pytest.raises(TypeError, match=r"a Value's _op is text, not 3"):
        square.__init__(1.0, (), 3)
    assert (square.data, square._op, square._prev) == (9.0, "**2", (many[3],)), "an error changes nothing"


def test_a_gradient_that_is_an_object_changes_in_place():
    """`+=` of micrograd changes a list or an array, which the program may hold."""
    for Class in (Reference, Value):
        x, total = Class(1.0), []
        y = x + x
        x.grad, y.grad = total, [2]
        y._backward()
        assert total == [2, 2]
        larger, other = Class(3.0), Class(2.0)
        maximum = larger.max(other)
        larger.grad, other.grad, maximum.grad = [], None, [2]
        maximum._backward()
        assert (larger.grad, other.grad) == ([2], None), "nothing is added to the operand that is not selected"


def test_a_million_levels_are_built_run_copied_and_freed_without_recursion():
    x = Value(1.0)
    v = x
    for _ in range(10**6):
        v = v + x
    v.backward()
    assert x.grad == 10**6 + 1
    assert len(v.topo()) == 10**6 + 1
    assert len(linearize(v, inputs=(), parameters=(x,))) == 10**6 + 1
    while len(v._prev) == 2 and v.data > 10**5:
        v = v._prev[0]
    assert len(copy.deepcopy(v).topo()) == 10**5
    del v
    assert x.grad == 10**6 + 1


def test_copies_keep_shared_operands():
    a = Value(2**70, label="a")
    b = (a * 3.0) ** 2
    own = Value(1.0, (a, b, a), "own", label="o")
    shallow = copy.copy(b)
    assert (repr(shallow), shallow._prev, shallow._op) == (repr(b), b._prev, "**2")
    copies = copy.deepcopy([a, b, own])
    assert list(map(repr, copies)) == list(map(repr, [a, b, own]))
    assert copies[1]._prev[0]._prev[0] is copies[0]
    assert [(v._op, v.label) for v in copies] == [("", "a"), ("**2", ""), ("own", "o")]
    assert copies[2]._prev == (copies[0], copies[1], copies[0])
    copies[1].backward()
    assert (a.grad, copies[0].grad > 0) == (0, True)
    own._backward = lambda: None
    with pytest.raises(TypeError, match="can't be copied"):
        copy.deepcopy(own)


def test_operators_create_the_class_of_their_left_operand():
    """A dressed class has the types of its numbers, and a constructor for more than one number."""

    def construct(v, data, *more):
        v.data, v.more = data, more

    plain = Value._dress(construct, False, 7)
    other = Value._dress(construct, True, 8)
    v = (plain(2) * 3 - 1) ** 2
    v.backward()
    assert {type(each) for each in v.topo()} == {plain}
    assert {type(number) for each in v.topo() for number in (each.data, each.grad)} == {float}
    assert (v.data, v._op, plain(1.0).__dict__, plain(1.0, 2).more) == (25.0, "**2", {}, (2,))
    w = type("Heir", (other,), {})(2) + 3
    w.backward()
    assert (type(w).__name__, w._prev[0].__dict__, [each.grad for each in w.topo()]) == ("Heir", {}, [1.0, 1.0, 1])
    assert isinstance(w.grad, int)
    assert isinstance(w._prev[1].grad, float)
    assert type(v * w) is plain
    changed = Value(1.0)
    changed.__class__ = type("Changed", (Value,), {"__slots__": ()})
    assert type(changed * 2.0) is Value
    assert type(Value(1.0) * v) is Value


def test_a_form_of_an_operation_has_its_own_last_digits():
    x = Value(1.565)
    y = x._tanh_01()
    y.backward()
    assert (y.data, x.grad, y._prev) == (math.tanh(1.565), 1 - math.tanh(1.565) ** 2, (x,))
    assert x._tanh_11().data == (math.exp(2 * 1.565) - 1) / (math.exp(2 * 1.565) + 1)
    assert y._record((x,), (), (y,)) is None, "no compiler has this form"
    same = copy.deepcopy(y)
    same.backward()
    assert same._prev[0].grad == 2 * x.grad, "a copy has the gradient of the original"


def test_attributes_of_the_programs_own():
    v = Value(1.0)
    v.m, v.history = 0.5, [v]
    assert (gc.is_tracked(v), gc.is_tracked(Value(1.0))) == (True, False), "v.history forms a cycle"
    same = copy.deepcopy(v)
    assert (same.m, same.history[0] is same, copy.copy(v).history is v.history) == (0.5, True, True)
    assert not hasattr(v, "absent")
    v.m, v.data, v.label = 2, 3, "w"
    del v.history
    with pytest.raises(AttributeError):
        v._name = "w"
    with pytest.raises(AttributeError):
        del v.history
    assert (v.__dict__, v.data, v.label, Value.__basicsize__) == ({"m": 2, "label": "w"}, 3, "w", 80)


# --- memory ----------------------------------------------------------------------------------------------------------


def test_a_backward_function_of_the_program_frees_its_cycle():
    class Witness:
        pass

    def build():
        witness, x = Witness(), Value(1.0)
        y = Value(2.0, (x,), "mine")
        y._backward = lambda: (y, witness)
        (y * 3.0).backward()
        return weakref.ref(witness)

    alive = build()
    gc.collect()
    assert alive() is None


def test_hundreds_of_steps_leave_nothing_behind():
    w = [Value(0.1 * i) for i in range(20)]

    def step():
        x = [Value(float(i)) for i in range(20)]
        loss = sum((wi * xi for wi, xi in zip(w, x)), Value(2**70)).tanh().exp().log() ** 2 / 3 - w[0].max(0.5)
        loss.backward()
        loss.topo()
        copy.deepcopy(loss)
        for error in (lambda: loss + "a", lambda: loss**loss, lambda: Value("a").relu(), lambda: loss / 0):
            with pytest.raises((TypeError, ZeroDivisionError)):
                error()
        for p in w:
            p.data -= 0.01 * p.grad
            p.grad = 0

    def blocks():
        gc.collect()
        return sys.getallocatedblocks()

    def growth():
        before, references = blocks(), sys.getrefcount(Value)
        for _ in range(100):
            step()
        return blocks() - before, sys.getrefcount(Value) - references

    growth()  # fills caches and free lists
    # The interpreter counts the blocks of all threads. Those of other tests come and go; a leak shows in every round.
    allocated, references = map(min, zip(*(growth() for _ in range(3))))
    assert allocated < 100
    assert references < 20


# --- recording -------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(100), deadline=None)
@given(random_graphs(), st.integers(0, 9))
def test_the_tape_is_that_of_the_recorder_in_python(graph, last):
    try:
        tapes = [tape_of(graph, ["input", "parameter", "other"] * 2, range(last), Class) for Class in (Value, InPython)]
    except (ArithmeticError, ValueError):
        assume(False)
    assert tapes[0] == tapes[1]
    assert list(tapes[0].lines()) == list(tapes[1].lines())


def test_a_graph_with_a_backward_function_of_the_program_cannot_be_compiled():
    x = Value(1.0)
    y = x * 2.0
    y._backward = lambda: None
    with pytest.raises(AttributeError, match=r"(?s)no backward functions.*--engine hoisted"):
        linearize(y, inputs=[x], parameters=[])
