"""One line compiles a loss function, with the bits of the function itself or with a reason why not."""

import abc
import builtins
import copy
import enum
import functools
import math
import os
import pickle
import random
import sys
import threading
import time
import types
import warnings
from array import array
from collections import deque, namedtuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zoomgrad
from tests.engines.graphs import EXPONENTS, UNARY, bits
from zoomgrad import engines
from zoomgrad.decorator import Compiled, NotCompiled
from zoomgrad.engines import nn
from zoomgrad.engines.graph.value import Value as PythonValue
from zoomgrad.state import State, comparison, unchanged
from zoomgrad.variant import NotTraced

ENGINE = "python-source"


def engine_with(value):
    """An engine of our own whose graphs are of that class."""
    engine = copy.copy(engines.load(ENGINE))
    engine.__dict__.pop("nn", None)
    engine.Value = value
    return engine


NATIVE = zoomgrad.Value


@pytest.fixture(
    params=[NATIVE, PythonValue] if NATIVE is not PythonValue else [PythonValue], ids=lambda v: v.__module__
)
def engine(request):
    return engine_with(request.param)


def compile_with(engine, function, *, strict=True, variants=8):
    return Compiled(function, engine, strict, variants)


# --- the same bits ---------------------------------------------------------------------------------------------------

DATA = ("x + 1", "x * y", "-x", "x - y", "2 - x", "v * x", "x * v", "x + v", "v - x", "x - v", "v / x", "x / v")
BINARY = ("v + w", "v - w", "v * w", "v / w", "v.max(w)", "v.max(x)", "2 * v", "v + 0.5", "1 - v", "v / 3", "3 / v")
steps = st.lists(
    st.tuples(st.sampled_from(DATA + BINARY + tuple(f"v.{op}()" for op in UNARY if op != "neg") + ("v ** k",)),
              st.integers(0, 99), st.integers(0, 99)),
    min_size=1,
    max_size=25,
)  # fmt: skip
numbers = st.one_of(st.floats(-2.0, 2.0), st.sampled_from([0.0, -0.0, 1.0]), st.integers(-3, 3))


def program(taken):
    def loss(parameters, data):
        values, plain = list(parameters), list(data)
        for text, i, j in taken:
            names = {
                "v": values[-1 - i % len(values)],
                "w": values[-1 - j % len(values)],
                "x": plain[-1 - i % len(plain)],
                "y": plain[-1 - j % len(plain)],
                "k": EXPONENTS[j % len(EXPONENTS)],
            }
            made = eval(text, names)
            (values if set(text) & {"v", "w"} else plain).append(made)
        return values[-1]

    return loss


@settings(max_examples=60)
@given(
    steps,
    st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=4),
    st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=2, max_size=3),
)
def test_a_random_program_has_the_same_bits_compiled(taken, start, rows):
    """Gradients that were there before are part of the sums, so the order of the sums shows."""
    for value in {NATIVE, PythonValue}:
        function = program(taken)
        loss = compile_with(engine_with(value), function, strict=False)
        ours, theirs = [value(x) for x in start], [value(x) for x in start]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCompiled)
            for row in rows:
                row = [type(rows[0][at])(x) for at, x in enumerate(row)]
                try:
                    expected = function(theirs, row)
                    if not math.isfinite(expected.data):
                        return
                    expected.backward()
                except (ArithmeticError, ValueError, TypeError):
                    return  # the program has left the domain of its operations
                got = loss(ours, row)
                got.backward()
                assert bits([got.data]) == bits([expected.data])
                assert bits(v.grad for v in ours) == bits(v.grad for v in theirs)
                for v in (*ours, *theirs):
                    v.data -= 0.01 * v.grad if math.isfinite(v.grad) else 0.0


def demo(model, X, y, Value):
    """micrograd's demo, but for its accuracy, which looks at numbers."""
    inputs = [list(map(Value, row)) for row in X]
    scores = list(map(model, inputs))
    losses = [(1 + -yi * score).relu() for yi, score in zip(y, scores)]
    data_loss = sum(losses) * (1.0 / len(losses))
    return data_loss + 1e-4 * sum(p * p for p in model.parameters()), scores


@pytest.mark.parametrize("kind", [list, "numpy"])
def test_a_training_script_trains_with_the_same_bits(engine, kind):
    value = engine.Value
    loss = compile_with(engine, lambda model, X, y: demo(model, X, y, value))
    numbers = random.Random(1)
    X = [[numbers.uniform(-1, 1), numbers.uniform(-1, 1)] for _ in range(6)]
    y = [numbers.choice((-1, 1)) for _ in X]
    if kind == "numpy":
        np = pytest.importorskip("numpy")
        X, y = np.array(X), np.array(y)
    ours, theirs = (nn.bind(value).MLP(2, [4, 1], rng=random.Random(7)) for _ in range(2))
    for step in range(6):
        if step % 3 == 0:
            ours.zero_grad()
            theirs.zero_grad()
        total, scores = loss(ours, X, y)
        expected, plain = demo(theirs, [list(map(float, row)) for row in X], [int(each) for each in y], value)
        total.backward()
        expected.backward()
        assert bits([total.data, *(s.data for s in scores)]) == bits([expected.data, *(s.data for s in plain)])
        assert [p.grad for p in ours.parameters()] == [p.grad for p in theirs.parameters()]
        for p in (*ours.parameters(), *theirs.parameters()):
            p.data -= 0.1 * p.grad
    assert loss.cache_info()[:2] == (6, 1)


def test_every_container_of_values_and_data_is_taken(engine):
    V = engine.Value
    a, b = V(2.0), V(3.0)

    def loss(p, q, x, name=None):
        return p["w"][0] * x["n"] + p["b"] * q + (q * x["row"][1] if name == "long" else 0)

    got = compile_with(engine, loss)({"w": (a,), "b": b}, a, {"n": 2, "row": array("d", [1, 5])}, name="long")
    got.backward()
    assert (got.data, a.grad, b.grad) == (20.0, 10.0, 2.0)


def test_new_values_of_the_same_structure_use_the_same_program(engine):
    loss = compile_with(engine, lambda w, x: (w[0] * x + w[1]) ** 2)
    for start in (1.0, 2.0, 3.0):
        w = [engine.Value(start), engine.Value(1.0)]
        got = loss(w, 2.0)
        got.backward()
        assert got.data == (start * 2 + 1) ** 2 and w[0].grad == 4 * (2 * start + 1)
    assert loss.cache_info().compilations == 1
    a = engine.Value(3.0)
    loss([a, a], 2.0).backward()  # one Value twice is another graph
    assert a.grad == 54.0 and loss.cache_info().compilations == 2


def test_an_earlier_loss_keeps_its_numbers(engine):
    w = engine.Value(3.0)
    loss = compile_with(engine, lambda w, x: w * w * x)
    first, second = loss(w, 2.0), loss(w, 10.0)
    first.backward()
    assert w.grad == 12.0
    second.backward()
    assert w.grad == 72.0
    with pytest.raises(RuntimeError, match="backward ran already"):
        second.backward()


def test_a_value_that_only_an_output_uses_keeps_its_gradient(engine):
    a, b = engine.Value(2.0), engine.Value(5.0)
    total, other = compile_with(engine, lambda a, b: (a * a, b * a))(a, b)
    total.backward()
    assert (other.data, a.grad, repr(b)) == (10.0, 4.0, repr(engine.Value(5.0)))


# --- guards ----------------------------------------------------------------------------------------------------------


def looks_at_data(v, x):
    return v if v.data > 0 else v * x


LOOKS = {
    "data": lambda v, x: v * (2.0 if v.data > 0 else 3.0),
    "grad": lambda v, x: v * (v.grad + 1.0),
    "exp": lambda v, x: v * math.exp(x),
    "branch": lambda v, x: v if x > 0 else -v,
    "bool": lambda v, x: v if x else v * 2.0,
    "int": lambda v, x: v * int(x),
    "index": lambda v, x: [v, v * 2.0, v * 3.0][x],
    "sort": lambda v, x: sorted([x, 0.5])[0] * v,
    "max": lambda v, x: v * max(x, 0.5),
    "equal": lambda v, x: v if x == 1 else v * 2.0,
    "hash": lambda v, x: v * {1: 2.0, -2: 3.0}[x],
    "text": lambda v, x: v * len(str(v)),
    "copy": lambda v, x: copy.deepcopy(v) * v,
    "divide": lambda v, x: v * (x / 3),
    "sum": lambda v, x: v * sum([x * 0.1, 0.3, 0.6]),
    "type": lambda v, x: v * (x if type(x) is int else 7.0),
    "class": lambda v, x: v * x if isinstance(x, type(v)) else -v,
    "backward": lambda v, x: ((v * x).backward(), v * v.grad)[1],
    "write": lambda v, x: (setattr(v, "data", 7.0), v * 1.0)[1],
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_at_a_number_is_noticed(engine, name):
    """The function then runs as it is, so both numbers are right; or it is refused."""
    function, results = LOOKS[name], []
    for run in (function, compile_with(engine, function, strict=False)):
        v = engine.Value(0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCompiled)
            results.append([run(v, x).data for x in (1, -2, 1)])
    assert results[0] == results[1]
    with pytest.raises(NotTraced) as refused:
        compile_with(engine, function)(engine.Value(0.5), 1)
    assert "\n  " in str(refused.value)
    assert engine.Value(3.0).data == 3.0  # the hooks are gone


def test_the_warning_names_the_place_and_comes_once(engine):
    loss = compile_with(engine, looks_at_data, strict=False)
    with pytest.warns(NotCompiled, match=r"it reads \.data in looks_at_data, line \d+ of test_compiled\.py") as told:
        loss(engine.Value(1.0), 2.0)
        loss(engine.Value(-1.0), 2.0)
    assert len(told) == 1 and told[0].filename == __file__


SCALE, WEIGHTS, HISTORY = 2.0, [1.0, 2.0], []


def test_what_the_function_uses_besides_its_arguments_is_watched(engine, monkeypatch):
    V = engine.Value
    module = sys.modules[__name__]

    class Model:
        def __init__(self):
            self.w, self.power = V(3.0), 2

        def __call__(self, x):
            return SCALE * self.w**self.power * x + sum(WEIGHTS)

    monkeypatch.setattr(module, "WEIGHTS", [1.0, 2.0])
    model, bias = Model(), V(10.0)
    loss = compile_with(engine, lambda x: model(x) + bias)
    plain = loss.__wrapped__
    assert loss(1.0).data == 31.0
    for change in (
        lambda: monkeypatch.setattr(module, "SCALE", 5.0),
        lambda: WEIGHTS.append(7.0),
        lambda: monkeypatch.setattr(model, "power", 3),
        lambda: monkeypatch.setattr(model, "w", V(4.0)),
        lambda: monkeypatch.setattr(Model, "__call__", lambda self, x: self.w * x),
        lambda: setattr(bias, "data", 11.0),
    ):
        before = plain(2.0).data
        change()
        assert loss(2.0).data == plain(2.0).data != before
    loss(1.0).backward()
    assert bias.grad == 1.0
    assert "2 of them captured" in loss.report() and "traced again 5 times" in loss.report()


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda v: v * random.random(), "calls .*random"),
        (lambda v: (HISTORY.append(v * 2.0), HISTORY[-1])[1], "outlives the call"),
        (lambda v: 3.0, "not a Value"),
        (lambda v: v * float("nan"), "constants must be finite"),
    ],
)
def test_what_a_graph_can_not_hold_is_refused(engine, function, why):
    HISTORY.clear()
    with pytest.raises(NotTraced, match=why):
        compile_with(engine, function)(engine.Value(2.0))


def test_a_value_computed_before_the_call_is_refused(engine):
    a = engine.Value(2.0)
    penalty = a * a
    with pytest.raises(NotTraced, match=r"the result of '\*', computed before the call"):
        compile_with(engine, lambda x: penalty * x)(1.0)
    cached = functools.lru_cache(lambda: a * a)
    with pytest.raises(NotTraced, match=r"changes of cached, .*lru_cache|computed before the call"):
        compile_with(engine, lambda x: cached() * x)(1.0)
    with pytest.raises(TypeError, match=r"an argument is the result of '\*'"):
        compile_with(engine, lambda p: p * 2.0)(penalty)


@pytest.mark.parametrize("change", [list.pop, list.reverse, lambda xs: xs.append(1.0)])
def test_a_function_that_changes_an_argument_is_refused(engine, change):
    def loss(w, xs):
        change(xs)
        return w * xs[0]

    with pytest.raises(NotTraced, match=r"changes an argument|changes of change"):
        compile_with(engine, loss)(engine.Value(2.0), [1.0, 2.0])
    xs = [1.0, 2.0]
    with pytest.warns(NotCompiled):
        compile_with(engine, loss, strict=False)(engine.Value(2.0), xs)
    assert xs != [1.0, 2.0]


def test_what_is_too_large_to_watch_is_not_compiled(engine, monkeypatch):
    monkeypatch.setattr("zoomgrad.watch.MOST", 500)
    table = [1.0] * 1000
    loss = compile_with(engine, lambda w: w * table[3], strict=False)
    with pytest.warns(NotCompiled, match="changes of table"):
        loss(engine.Value(2.0))
    assert "changes of table, a list of 1,000 entries, would not be noticed" in loss.report()
    with pytest.raises(NotTraced, match="changes of table"):
        compile_with(engine, lambda w: w * table[3])(engine.Value(2.0))


def test_constants_made_inside_are_listed_and_strictly_refused(engine):
    def loss(w):
        return w * engine.Value(0.25) + 1.0

    relaxed = compile_with(engine, loss, strict=False)
    assert relaxed(engine.Value(4.0)).data == 2.0
    assert "constants, because the function makes them: 0.25" in relaxed.report()
    with pytest.raises(NotTraced, match="Values of its own"):
        compile_with(engine, loss)(engine.Value(4.0))


def test_variants_are_bounded_and_reported(engine):
    def total(w, xs, kind):
        return sum((w * x for x in xs), w)

    loss = compile_with(engine, total, variants=2)
    w = engine.Value(2.0)
    for length in (1, 2, 3, 2):
        assert loss(w, [1.0] * length, "sum").data == 2.0 + 2.0 * length
    loss(w, [1.0, 2.0], "mean")
    assert loss.cache_info() == (3, 4, 2, 2, 2)
    assert loss.report() == (
        "total: python-source, 2 of at most 2 variants, 2 dropped\n"
        "  (Value, list of 2 numbers, 'sum')\n"
        "    2 calls, 1 parameter, 2 inputs\n"
        "  (Value, list of 2 numbers, 'mean')\n"
        "    1 call, 1 parameter, 2 inputs"
    )
    loss.clear()
    assert loss.cache_info().variants == 0


# --- behaviour of a function -----------------------------------------------------------------------------------------


def test_an_error_of_the_function_is_its_own_and_nothing_is_kept(engine):
    def loss(w, xs):
        if len(xs) > 1:
            raise KeyError("mine")
        return w * xs[0]

    run = compile_with(engine, loss)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            run(engine.Value(1.0), [1.0, 2.0])
    assert run(engine.Value(2.0), [4.0]).data == 8.0 and run.cache_info().variants == 1


@pytest.mark.parametrize("x", [0.0, math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_the_functions_own(engine, x):
    def function(w, x):
        return (w * x) ** -1 * x

    loss, w = compile_with(engine, function), engine.Value(1.0)
    loss(w, 2.0)
    try:
        expected = function(w, x).data
    except (ArithmeticError, ValueError) as error:
        with pytest.raises(type(error)):
            loss(w, x)
    else:
        assert bits([loss(w, x).data]) == bits([expected])


def test_a_compiled_function_may_call_another_and_itself(engine):
    inner = compile_with(engine, lambda w, x: w * x)

    def power(w, x, n):
        return inner(w, x) if n == "" else inner(outer(w, x, n[1:]), x)

    outer = compile_with(engine, power)
    assert outer(engine.Value(3.0), 2.0, "aa").data == 24.0
    assert inner.cache_info().variants == 0
    looks = compile_with(engine, lambda w: inner(w, 2.0) * (1.0 if w.data > 0 else 2.0), strict=False)
    with pytest.warns(NotCompiled):
        assert looks(engine.Value(-3.0)).data == -12.0


def test_a_method_is_compiled_for_each_object(engine):
    class Model:
        def __init__(self, scale):
            self.w = engine.Value(scale)

        loss = compile_with(engine, lambda self, x: self.w * x)

    two, three = Model(2.0), Model(3.0)
    assert [two.loss(5.0).data, three.loss(5.0).data, two.loss(1.0).data] == [10.0, 15.0, 2.0]


def test_threads_share_a_function(engine):
    loss = compile_with(engine, lambda w, x: w * w * x)
    wrong = []

    def work(number):
        w = engine.Value(float(number))
        for x in range(40):
            got, w.grad = loss(w, float(x)), 0
            got.backward()
            if got.data != number * number * x or w.grad != 2 * number * x:
                wrong.append((number, x))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_program_of_its_own_trains_and_writes_back(engine):
    w, b = engine.Value(0.0), engine.Value(0.0)
    loss = compile_with(engine, lambda w, b, x, y: (w * x + b - y) ** 2)
    trained = loss.program(w, b, 0.0, 0.0)
    rows = array("d", [value for x in range(5) for value in (x / 4, 2.0 * x / 4 + 1.0)])
    trained.program.train(rows, rate=0.2, steps=600)
    assert w.data == 0.0
    trained.write_back()
    assert abs(w.data - 2.0) < 1e-3 and abs(b.data - 1.0) < 1e-3


# --- misuse ----------------------------------------------------------------------------------------------------------


class Stranger:
    """A Value of another micrograd."""

    def __init__(self, data):
        self.data, self.grad = data, 0

    def __add__(self, other):
        return Stranger(self.data + other.data)

    __mul__ = __add__

    def backward(self):
        pass


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (Stranger(1.0), "only zoomgrad's Value"),
        ([Stranger(1.0)], "only zoomgrad's Value"),
        (iter([1.0]), "read only once"),
        ({1.0, 2.0}, "neither data nor a constant"),
    ],
)
def test_an_argument_that_can_not_be_taken_is_named(engine, argument, message):
    with pytest.raises(TypeError, match=message) as refused:
        compile_with(engine, lambda w, x: w)(engine.Value(1.0), argument)
    assert "\n  " in str(refused.value)


def test_an_int_beyond_doubles_is_refused(engine):
    loss = compile_with(engine, lambda w, x: w * x)
    for _ in range(2):
        with pytest.raises(ValueError, match="not exact as a double"):
            loss(engine.Value(1.0), 2**60 + 1)
        loss(engine.Value(1.0), 3)


def test_a_loss_is_no_operand(engine):
    got = compile_with(engine, lambda w: w * 2.0)(engine.Value(1.0))
    assert repr(got) == "Value(data=2.0, grad=0)"
    for use in (lambda: got + 1, lambda: 2 * got, lambda: got**2, lambda: -got, lambda: got.relu()):
        with pytest.raises(TypeError, match="part of another expression"):
            use()


def test_the_decorators_own_arguments_are_checked():
    for use, error, message in (
        (lambda: zoomgrad.compiled(len), TypeError, "takes the name of an engine"),
        (lambda: zoomgrad.compiled("tuple"), TypeError, "compiles nothing"),
        (lambda: zoomgrad.compiled("tc"), engines.UnknownName, "there is no engine"),
        (lambda: zoomgrad.compiled(ENGINE, variants=0), ValueError, "variants must be"),
        (lambda: zoomgrad.compiled(ENGINE)(3), TypeError, "takes a function"),
        (lambda: zoomgrad.compiled(ENGINE)(int), TypeError, "takes a function"),
    ):
        with pytest.raises(error, match=message):
            use()

    def generates():
        yield 1

    with pytest.raises(TypeError, match="returns no loss"):
        zoomgrad.compiled(ENGINE)(generates)


@pytest.mark.parametrize("name", ["tcc", "rerolled-tcc", "tcc-extension", "bytecode", "rerolled-numpy"])
def test_every_kind_of_kernel_runs_it(name):
    try:
        engines.load(name).check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)

    @zoomgrad.compiled(name, strict=True)
    def loss(ws, xs):
        return sum((w * x for w, x in zip(ws, xs)), -1.0 * ws[0]) ** 2

    ws = [zoomgrad.Value(1.0), zoomgrad.Value(2.0)]
    for xs in ([1.0, 2.0], [3.0, 4.0]):
        loss(ws, xs).backward()
    assert [w.grad for w in ws] == [40.0, 96.0]


# --- what must not give a wrong number --------------------------------------------------------------------------------


def agree(engine, function, *calls, prepare=lambda: None):
    """The compiled function gives what the function gives, call by call, whether it runs compiled or not."""
    loss = compile_with(engine, function, strict=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCompiled)
        for call in calls:
            arguments = call() if callable(call) else call
            assert loss(*arguments).data == function(*arguments).data
    return loss


def test_a_value_that_is_an_argument_and_a_global(engine):
    captured = engine.Value(3.0)
    agree(engine, lambda w: w * captured, [captured], [engine.Value(5.0)], [captured])
    agree(engine, lambda w: w * captured, [engine.Value(5.0)], [captured])


def test_gradients_of_a_value_that_is_an_argument_and_a_global(engine):
    captured = engine.Value(3.0)
    loss = compile_with(engine, lambda w: w * captured, strict=False)
    loss(engine.Value(5.0)).backward()
    captured.grad = 0
    loss(captured).backward()
    assert captured.grad == 6.0


class Kind(enum.IntEnum):
    """A number that is more than a number."""

    ONE = 1


def test_numbers_of_other_types(engine):
    w = engine.Value(2.0)
    agree(engine, lambda w, n, x, y: w * x, [w, Kind.ONE, 3.0, 7.0], [w, Kind.ONE, 3.0, 7.0], [w, Kind.ONE, 4.0, 7.0])
    agree(engine, lambda w, n: w * (2 if isinstance(n, int) else 3), [w, 3], [w, 3.0], [w, Kind.ONE])


def test_ints_that_doubles_would_round(engine):
    w = engine.Value(2.0)
    big = 2**27
    agree(engine, lambda w, a, b, c, d: w * (a * b - c * d), [w, 1, 2, 3, 4], [w, big + 1, big + 1, big, big + 2])


PAIR = namedtuple("PAIR", "a b")


class AnyKey:
    """A dict's key that equals all others."""

    def __init__(self, factor):
        self.factor = factor

    __eq__ = lambda self, other: True  # noqa: E731
    __hash__ = lambda self: 1  # noqa: E731


def test_arguments_that_are_equal_and_differ(engine):
    v, w = engine.Value(2.0), engine.Value(7.0)
    agree(engine, lambda rows: rows[0][0] * (2.0 if isinstance(rows[0], PAIR) else 3.0), [[(v, w)]], [[PAIR(v, w)]])
    for keys in ((1, True), (AnyKey(2.0), AnyKey(5.0)), ((1, "a"), (True, "a"))):
        text = (lambda key: key.factor) if isinstance(keys[0], AnyKey) else (lambda key: len(str(key)))
        agree(engine, lambda d, text=text: sum(v * text(k) for k, v in d.items()), *([{key: v}] for key in keys))
    loss = compile_with(engine, lambda d: next(v * k for k, v in d.items()), strict=False)
    assert bits([loss({0.0: v}).data, loss({-0.0: v}).data]) == bits([0.0, -0.0])
    agree(engine, lambda d, p: sum(k * x for k, x in d.items()) * p, [{v: 2.0}, v], [{v: 2.0}, w])


def test_a_function_that_waits_for_another_thread(engine):
    inner, found, waits = compile_with(engine, lambda v: v * 3.0), [], []

    def loss(v):
        thread = threading.Thread(target=lambda: found.append(inner(engine.Value(2.0)).data), daemon=True)
        thread.start()
        thread.join(10)
        waits.append(thread.is_alive())
        return v * 2.0

    with pytest.warns(NotCompiled):
        assert compile_with(engine, loss, strict=False)(engine.Value(2.0)).data == 4.0
    assert set(found) == {6.0} and not any(waits)


def test_the_type_of_an_array_and_its_entries(engine):
    v = engine.Value(2.0)
    agree(
        engine,
        lambda v, xs: v * (xs[0] if isinstance(xs, list) else xs[0] * xs[0]),
        *([v, array("d", [x])] for x in (1.0, 2.0)),
    )
    np = pytest.importorskip("numpy")
    agree(
        engine,
        lambda v, xs: sum(v * x * (1.0 if isinstance(x, int) else v) for x in xs.tolist()),
        [engine.Value(1.0), np.array([2])],
        [v, np.array([2])],
    )


def test_the_check_of_the_first_call_leaves_all_gradients_alone(engine):
    """The sum of two arrays is a list in a trace, so the function reaches another Value."""
    v, w = engine.Value(2.0), engine.Value(3.0)
    loss = compile_with(engine, lambda v, w, xs: (v if isinstance(xs + xs, list) else w) * xs[0], strict=False)
    with pytest.warns(NotCompiled, match="compiled"):
        loss(v, w, array("d", [1.0])).backward()
    assert (v.grad, w.grad) == (0, 1.0)
    loss = compile_with(engine, lambda v, xs: v * 2.0 if isinstance(xs + xs, list) else 3.0, strict=False)
    with pytest.warns(NotCompiled, match="compiled"):
        assert loss(v, array("d", [1.0])) == 3.0


class Scale:
    """An object with a slot, which is no entry of a dictionary."""

    __slots__ = ("by",)

    def __init__(self, by):
        self.by = by


def test_state_outside_dictionaries(engine):
    w, scale, array_of, queue = engine.Value(2.0), Scale(2.0), array("d", [2.0]), deque([2.0])

    def change():
        scale.by = array_of[0] = queue[0] = 5.0
        return [w]

    agree(engine, lambda w: w * scale.by, [w], change)
    scale.by = array_of[0] = queue[0] = 2.0
    agree(engine, lambda w: w * array_of[0], [w], change)
    scale.by = array_of[0] = queue[0] = 2.0
    agree(engine, lambda w: w * queue[0], [w], change)


def test_a_label_is_not_read(engine):
    one, other = engine.Value(2.0, label="a"), engine.Value(2.0, label="b")
    agree(engine, lambda w: w * (2 if w.label == "a" else 3), [one], [other])


def test_the_type_of_data_is_that_of_the_number(engine):
    """A Value in place of the number stands for it during a trace."""

    def loss(w, x):
        return (w * x).relu() if isinstance(x, engine.Value) else w * x if isinstance(x, float) else w * w * 1.5

    agree(engine, loss, [engine.Value(2.0), 3.0], [engine.Value(2.0), -3.0], [engine.Value(2.0), 3])


# --- what can't be watched is not compiled ---------------------------------------------------------------------------

NAMED = 2.0
"""Read by name, through many doors."""

HIDING = types.ModuleType("hiding")
vars(HIDING)["__getattr__"] = lambda name: NAMED

TEMPLATE = "{0.__globals__[NAMED]}"


def of_frame(v):
    numbers = (each for each in [1])
    return v * numbers.gi_frame.f_globals["NAMED"]


def importing(v):
    import math as m

    return v * m.pi


def in_a_thread(v):
    found = []
    thread = threading.Thread(target=lambda: found.append(v.data))
    thread.start()
    thread.join()
    return v * (2.0 if found[0] > 0 else 3.0)


REFUSED = {
    "globals": (lambda v: v * globals()["NAMED"], "calls globals"),
    "vars": (lambda v: v * vars(sys.modules[__name__])["NAMED"], "(calls|uses) vars"),
    "getattr": (lambda v: v * getattr(sys.modules[__name__], "NAM" + "ED"), "calls getattr"),
    "eval": (lambda v: v * eval("NAMED"), "built different graphs|calls eval"),
    "dunder": (lambda v: v * looks_at_data.__globals__["NAMED"], "uses .__globals__"),
    "format": (lambda v: v * len(TEMPLATE.format(looks_at_data)), "calls str.format"),
    "module": (lambda v: v * HIDING.number, "code that it can't find a function of"),
    "frame": (of_frame, "uses .gi_frame"),
    "import": (importing, "imports in a function"),
    "environ": (lambda v: v * len(os.environ["PATH"]), "calls os"),
    "clock": (lambda v: v * (1.0 + 0.0 * time.time()), "calls time.time"),
    "clock from C": (lambda v: v * (1.0 + 0.0 * next(map(max, iter(time.time, 0), [5.0]))), "time.time"),
    "identity": (lambda v: v * (2.0 if v is NAMED else 3.0), "compares identities"),
    "id": (lambda v: v * (1.0 + 0.0 * id(v)), "calls id"),
    "hash": (lambda v: sum({v, v * 2.0}), "calls __hash__"),
    "thread": (in_a_thread, "calls threading"),
    "op": (lambda v: v * len(v._op), "reads ._op"),
    "text": (lambda v: v * len(repr(v)), "calls __repr__"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_watched_is_not_compiled(engine, name):
    function, reason = REFUSED[name]
    with pytest.raises(NotTraced, match=reason):
        compile_with(engine, function)(engine.Value(2.0))


def test_other_attributes_are_watched(engine, monkeypatch):
    """Each change goes past the dictionary of an object."""
    V = engine.Value

    class Meta(type):
        power = 2

    class Base:
        scale = 2.0

    class Entries(list, metaclass=Meta):
        pass

    class Model(Base):
        __slots__ = ("__hidden",)

        def __init__(self):
            self.__hidden, self.entries, self.by_key = 2.0, Entries([1.0]), {self: 1.0}
            self.entries.scale = 1.0

        def hide(self, number):
            self.__hidden = number

        def __call__(self, x):
            keys = sum(key.factor for key in self.by_key)
            return x * self.__hidden * self.scale * self.entries.scale * self.factor * keys**Entries.power

        factor = 1.0

    class Other(Model):
        factor = 23.0

    model = Model()
    helper = compile_with(engine, lambda x: x * 1.0)
    helper.scale = 2.0
    monkeypatch.setattr(math, "own", 2.0, raising=False)
    monkeypatch.setattr("zoomgrad.decorator.MOST_RETRACES", 20)

    def function(x):
        try:
            extra = model.extra
        except AttributeError:
            extra = 1.0
        return model(x) * helper.scale * math.own * extra

    changes = (
        lambda: model.hide(5.0),
        lambda: setattr(model.entries, "scale", 7.0),
        lambda: setattr(Meta, "power", 3),
        lambda: setattr(model, "__dict__", {**vars(model), "by_key": {Model(): 3.0, model: 4.0}}),
        lambda: setattr(Base, "scale", 11.0),
        lambda: setattr(model, "__class__", Other),
        lambda: setattr(model, "extra", None) or setattr(model, "extra", 13.0),
        lambda: setattr(helper, "scale", 17.0),
        lambda: setattr(math, "own", 19.0),
        lambda: setattr(V, "unused", 1.0),
    )
    loss, v = compile_with(engine, function), V(2.0)
    try:
        for change in changes:
            assert loss(v).data == function(v).data
            change()
        assert loss(v).data == function(v).data
    finally:
        if hasattr(V, "unused"):
            del V.unused
    assert "runs as it is" not in loss.report()


class Place:
    """An index."""

    def __init__(self, at):
        self.at = at

    def __index__(self):
        return self.at


def uncalled():
    """Has an attribute."""


def of_math(v):
    try:
        return v * math.absent
    except AttributeError:
        return v * 2.0


def of_builtins(v):
    try:
        return v * ABSENT
    except NameError:
        return v * 2.0


def unnoticed():
    """Functions, and what changes a number that they use."""
    abstract, joining = abc.ABCMeta("Abstract", (), {}), type("Joining", (), {})()
    numbers, place, row = {float("2.5")}, Place(1), [1.0, 2.0, 4.0]
    until = slice(0, place)
    uncalled.scale = 2.0
    return [
        (lambda v: v * sum(numbers), lambda: (numbers.clear(), numbers.add(float("7.5")))),
        (lambda v: v * sum(row[until]) * row[Place(0)], lambda: setattr(place, "at", 3)),
        (lambda v: v * (2.0 if isinstance(joining, abstract) else 3.0), lambda: abstract.register(type(joining))),
        (lambda v: v * uncalled.scale, lambda: setattr(uncalled, "scale", 5.0)),
        (of_math, lambda: setattr(math, "absent", 5.0)),
        (of_builtins, lambda: setattr(builtins, "ABSENT", 5.0)),
    ]


@pytest.mark.parametrize("case", range(len(unnoticed())))
def test_changes_that_hide(engine, case):
    function, change = unnoticed()[case]
    v = engine.Value(2.0)
    before = function(v).data
    try:
        agree(engine, function, [v], [v], lambda: (change(), [v])[1])
        assert function(v).data != before
    finally:
        vars(math).pop("absent", None)
        vars(builtins).pop("ABSENT", None)


@pytest.mark.parametrize("name", ["tcc", ENGINE])
@pytest.mark.parametrize(("exponent", "number"), [(0.5, 0.0), (-1, 1e-200), (0, 0.0)])
def test_an_error_of_the_backward_pass_is_raised(name, exponent, number):
    """C computes infinity there."""
    try:
        engines.load(name).check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    loss, v = zoomgrad.compiled(name, strict=True)(lambda v: v**exponent), zoomgrad.Value(1.0)
    loss(v)
    v.data = number
    with pytest.raises((ArithmeticError, ValueError)):
        loss(v).backward()
    assert v.grad == 0 and loss.cache_info().calls == 2


@pytest.mark.parametrize(
    ("function", "number"),
    [
        (lambda v: (v.exp() + 1.0) ** -1, 1000.0),
        (lambda v: v.log().exp(), 0.0),
        (lambda v: (v**-1).tanh(), 0.0),
        (lambda v: v.sigmoid() + 1.0, -1000.0),
    ],
)
@pytest.mark.parametrize("name", ["tcc", ENGINE])
def test_an_error_inside_the_graph_is_raised(name, function, number):
    """C computes infinity there, which a later operation hides."""
    try:
        engines.load(name).check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    loss = zoomgrad.compiled(name, strict=True)(function)
    assert loss(zoomgrad.Value(1.0)).data == function(zoomgrad.Value(1.0)).data
    with pytest.raises((ArithmeticError, ValueError)):
        loss(zoomgrad.Value(number))
    assert loss.cache_info().calls == 1


def test_ints_that_doubles_would_round_inside_the_graph(engine):
    V = engine.Value
    large = [V(2**40), V(2**40 + 1)]
    agree(engine, lambda a, b: (a * b + 1 - a * b) * 2.5, [V(2.0), V(3.0)], large, [V(2), V(3)])
    agree(engine, lambda a, b: (a**30 + 1 - b**30) * 0.5, [V(2.0), V(3.0)], [V(7), V(7)], [V(2), V(3)])


def test_a_loss_of_other_numbers_has_no_backward_pass(engine):
    w = engine.Value(3.0)
    total = compile_with(engine, lambda w: w * w)(w)
    w.data = 5.0
    with pytest.raises(RuntimeError, match=r"another number now.*\n  Call `backward` before the update"):
        total.backward()
    w.data = 3.0
    total.backward()
    assert w.grad == 6.0
    with pytest.raises(AttributeError):
        total.data = 0.0


def test_a_returned_parameter_is_the_value_itself(engine):
    w = engine.Value(3.0)
    total, same, square = compile_with(engine, lambda w: (w * w, w, w * 2.0))(w)
    assert same is w and (total.data, square.data) == (9.0, 6.0)


@zoomgrad.compiled(ENGINE)
def at_the_top(w):
    return w * w


def test_a_compiled_function_is_pickled_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, at_the_top.__module__, sys.modules[__name__])
    assert pickle.loads(pickle.dumps(at_the_top)) is at_the_top is copy.deepcopy(at_the_top)
    with pytest.raises(pickle.PicklingError, match=r"can't be pickled.*\n  Compile it at the top level"):
        pickle.dumps(zoomgrad.compiled(ENGINE)(lambda w: w))


def test_both_comparisons_notice_the_same():
    """The one in C, where it can be built, and the one in Python."""
    kept = State()
    found, entries, function = Scale(1.0), [1.0], looks_at_data
    names = {"a": 1.0}
    kept.keep_type(found)
    kept.keep_attribute(found, "by")
    kept.keep_function(function)
    kept.keep_names(names, ["a", "b"])
    kept.keep_dict(names)
    kept.keep_list(entries)
    _, compared = kept.comparison()
    for compare in (unchanged, comparison()):
        assert compare(compared)
        for change, back in (
            (lambda: setattr(found, "by", 2.0), lambda: setattr(found, "by", compared[3][2])),
            (lambda: names.update(b=1.0), lambda: names.pop("b")),
            (lambda: entries.append(1.0), entries.pop),
            (lambda: setattr(function, "__defaults__", (1,)), lambda: setattr(function, "__defaults__", None)),
        ):
            change()
            assert not compare(compared)
            back()
            assert compare(compared)
