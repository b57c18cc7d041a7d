"""A compiled function gives what the function gives: looks at numbers, arrays, state, random numbers, locks."""

import collections
import contextlib
import copy
import itertools
import math
import os
import random
import threading
import time
import types
import warnings
from array import array

import pytest

import zoomgrad
from tests.zoomgrad.test_compiled import ENGINE, usable
from zoomgrad.decorator import NotCompiled
from zoomgrad.signature import NotTraced

Value = zoomgrad.Value


def both(make, calls):
    """The results of a function and of the compiled one, each made anew, and the gradients that they leave."""
    shown = []
    for wrap in (lambda function: function, zoomgrad.compiled(ENGINE)):
        random.seed(0)
        function = wrap(make())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCompiled)
            values = [Value(start) for start, *_ in calls]
            results = [function(v, *others).data for v, (_, *others) in zip(values, calls)]
        shown.append(str((results, [v.grad for v in values])))
    return shown


# --- looks at a number ----------------------------------------------------------------------------------------------


def by_suppress(v, x):
    y = v * 100.0
    with contextlib.suppress(ValueError):
        y = (v * x).log()
    return y * v


def by_power(v, x):
    try:
        return (v * x).relu() ** -1
    except (ArithmeticError, ValueError):  # PyPy raises another one
        return v * 7.0


def by_division(v, x):
    try:
        return v / (v * (x + -1.0 * v) + v)
    except (ArithmeticError, ValueError):
        return v * 7.0


def by_everything(v, x):
    try:
        return (-2000.0 * v * x).exp()
    except BaseException:
        return v * 7.0


def by_an_unused_result(v, x):
    try:
        (v * x).log()
    except ValueError:
        return v * 7.0
    return v * x


ONE_HOT, MAX = "one-hot target", r"Value\.max"
LOOKS = {
    "data": (lambda v, x: v * (2.0 if v.data > 0 else 3.0), "reads .data in <lambda>, line .* of test_purity.py"),
    "grad": (lambda v, x: v * (v.grad + 1.0), "reads .grad"),
    "label": (lambda v, x: v * (2.0 if v.label == "a" else 3.0), "reads .label"),
    "op": (lambda v, x: v * len((v * x)._op), "reads ._op"),
    "write": (lambda v, x: (setattr(v, "data", 7.0), v * 1.0)[1], "changes .data"),
    "backward": (lambda v, x: ((v * x).backward(), v * v.grad)[1], "reads .backward"),
    "text": (lambda v, x: v * len(str(v)), r"calls __repr__\(\)"),
    "copy": (lambda v, x: copy.deepcopy(v) * v, "reads .__"),
    "set": (lambda v, x: sum({v, v * 2.0}), r"calls __hash__\(\)"),
    "branch": (lambda v, x: v * 2.0 if x > 0 else -v, r"needs the number of an input \(__gt__\)"),
    "bool": (lambda v, x: v * 3.0 if x else v * 2.0, "__bool__"),
    "equal": (lambda v, x: v * 3.0 if x == 1 else v * 2.0, "__eq__"),
    "exp": (lambda v, x: v * math.exp(x), "__float__"),
    "int": (lambda v, x: v * int(x), "__int__"),
    "divide": (lambda v, x: v * (x / 3), "__truediv__"),
    "sum": (lambda v, x: v * sum([x * 0.1, 0.3, 0.6]), r"__radd__"),
    "index": (lambda v, x: [v * 1.0, v * 2.0, v * 3.0][x], ONE_HOT),
    "key": (lambda v, x: v * {1: 2.0, -2: 3.0}[x], ONE_HOT),
    "sort": (lambda v, x: sorted([x, 0.5])[0] * v, "Prepare the data"),
    "max of data": (lambda v, x: v * max(x, 0.5), MAX),
    "max": (lambda v, x: (v - max(s.data for s in [v, v * x])).exp(), rf"reads .data in <genexpr>(?s:.*){MAX}"),
    "log": (by_suppress, r"gets ValueError from log in by_suppress, line .*\n  Keep the operand"),
    "power": (by_power, r"gets \w+Error from __pow__"),
    "division": (by_division, r"gets \w+Error"),
    "overflow": (by_everything, "gets OverflowError from exp"),
    "constant": (lambda v, x: v * float("nan") if x < -5 else v * x * float("inf"), "needs the number|must be finite"),
    "number": (lambda v, x: 3.0, "it returned a float"),
    "leaf": (lambda v, x: v, "its loss is a leaf"),
    "random": (lambda v, x: v * random.random(), "it draws random numbers\n  Draw them before"),
    "returns": (lambda v, x: (v * x, x), "returns a number of its arguments"),
}


@pytest.mark.parametrize("first", [1, -2])
@pytest.mark.parametrize(
    "function",
    [*(LOOKS[name][0] for name in LOOKS if name not in ("number", "leaf", "returns")), by_an_unused_result],
    ids=lambda function: function.__name__,
)
def test_a_look_leaves_the_function_as_it_is(function, first):
    """An error that is caught in another call only is noticed by the check."""
    for start in (0.5, 1.0, -1.0):
        with contextlib.suppress(ArithmeticError, ValueError):
            plain, compiled = both(lambda: function, [(start, x) for x in (first, 1, -2, 1, -2)])
            assert plain == compiled


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_is_refused_with_its_place_and_remedy(name):
    function, message = LOOKS[name]
    with pytest.raises(NotTraced, match=message) as refused:
        for start, x in ((0.5, -2), (1.0, 1), (-1.0, -2)):
            with contextlib.suppress(ArithmeticError, ValueError):
                zoomgrad.compiled(ENGINE, strict=True)(function)(Value(start, label="a"), x)
    assert "\n  " in str(refused.value)
    assert Value(3.0).data == 3.0  # the hooks are gone


# --- arrays ----------------------------------------------------------------------------------------------------------

VIEWS = {
    "by rows": lambda np, x: x,
    "by columns": lambda np, x: np.asfortranarray(x),
    "axes in another order": lambda np, x: x.transpose(2, 0, 1),
    "gaps": lambda np, x: np.asfortranarray(x)[::2],
    "backwards": lambda np, x: x[::-1, ::-1, ::-1],
    "repeated": lambda np, x: np.broadcast_to(x[0, 0], (3, 4)),
    "overlapping": lambda np, x: np.lib.stride_tricks.sliding_window_view(x[0], 2, axis=0),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_the_memory_order_of_arrays(view):
    """The entries of the checked calls are equal, so the check does not notice another order."""
    np = pytest.importorskip("numpy")
    w = Value(1.0)
    for function in (
        lambda w, x: w * x.ravel("K")[1] + w * x.ravel("K")[2] * 10,
        lambda w, x: w * x.reshape(-1, order="A")[1],
        lambda w, x: w * x.copy("A").ravel("K")[1],
    ):
        loss = zoomgrad.compiled(ENGINE, strict=True)(function)
        for _ in range(3):
            loss(w, view(np, np.ones((2, 3, 4))))
        for other in (view, *VIEWS.values()):
            x = other(np, np.arange(24.0).reshape(2, 3, 4))
            assert loss(w, x).data == function(w, x).data


# --- the table of docs/using.md --------------------------------------------------------------------------------------

SCALE = 2.0


class Model:
    """Holds a number in every way."""

    factor = 2.0
    __slots__ = ("__dict__", "slot")

    def __init__(self, inner=None):
        self.slot = self.own = 2.0
        self.row, self.by_name, self.keys, self.queue = [2.0, 1.0], {"a": 2.0}, {0}, collections.deque([2.0])
        self.inner, self.w, self.numbers = inner, Value(2.0), array("d", [2.0])


def set_scale(number):
    globals()["SCALE"] = number


def of_closure():
    number = 2.0

    def change():
        nonlocal number
        number = 5.0

    return lambda v, m: v * number, change


def state():
    """Name -> a function of a Value and a model, a change of what it uses, and whether that is noticed at once."""
    model, module, row = Model(Model()), types.ModuleType("settings"), [2.0, 5.0]
    module.scale = 2.0
    os.environ["ZOOMGRAD_TEST_SCALE"] = "22"
    set_scale(2.0)
    changes = {
        "attribute": (lambda v, m: v * m.own, lambda: setattr(model, "own", 5.0), True),
        "attribute of a part": (lambda v, m: v * m.inner.own, lambda: setattr(model.inner, "own", 5.0), True),
        "Value": (lambda v, m: v * m.w, lambda: setattr(model, "w", Value(5.0)), True),
        "list": (lambda v, m: v * m.row[0], lambda: model.row.reverse(), True),
        "dict": (lambda v, m: v * m.by_name["a"], lambda: model.by_name.update(a=5.0), True),
        "set": (lambda v, m: v * len(m.keys), lambda: model.keys.add(1), True),
        "deque": (lambda v, m: v * m.queue[0], lambda: model.queue.appendleft(5.0), True),
        "slot": (lambda v, m: v * m.slot, lambda: setattr(model, "slot", 5.0), False),
        "class": (lambda v, m: v * m.factor, lambda: setattr(Model, "factor", 5.0), False),
        "array": (lambda v, m: v * m.numbers[0], lambda: model.numbers.__setitem__(0, 5.0), False),
        "global": (lambda v, m: v * SCALE, lambda: set_scale(5.0), False),
        "closure": (*of_closure(), False),
        "default": (lambda v, m, row=row: v * row[0], lambda: row.reverse(), False),
        "module": (lambda v, m: v * module.scale, lambda: setattr(module, "scale", 5.0), False),
        "environment": (
            lambda v, m: v * len(os.environ["ZOOMGRAD_TEST_SCALE"]),
            lambda: os.environ.update(ZOOMGRAD_TEST_SCALE="1"),
            False,
        ),
    }
    return model, changes


@pytest.mark.parametrize("name", state()[1])
def test_state_that_changes_between_calls(name, monkeypatch):
    monkeypatch.setattr(Model, "factor", 2.0)
    model, changes = state()
    function, change, at_once = changes[name]
    loss, v = zoomgrad.compiled(ENGINE)(function), Value(2.0)
    before = [loss(v, model).data for _ in range(4)]
    change()
    assert function(v, model).data not in before
    if at_once:
        assert loss(v, model).data == function(v, model).data and "as it is" not in loss.report()
    else:
        with pytest.warns(NotCompiled, match=r"when it runs as it is, but .* compiled\n  Let the result depend"):
            results = [loss(v, model).data for _ in range(64)]
        assert results[-1] == function(v, model).data != results[0]
    with contextlib.suppress(KeyError):
        del os.environ["ZOOMGRAD_TEST_SCALE"]


def test_a_function_that_changes_an_argument_is_refused():
    for change in (list.pop, list.reverse, lambda xs: xs.append(1.0)):
        loss = zoomgrad.compiled(ENGINE, strict=True)(lambda w, xs, change=change: (change(xs), w * xs[0])[1])
        with pytest.raises(NotTraced, match="changes an argument"):
            loss(Value(2.0), [1.0, 2.0])


def test_nan_among_arguments_is_no_change():
    numpy = pytest.importorskip("numpy")
    loss = zoomgrad.compiled(ENGINE, strict=True)(lambda w, xs: w * xs[0])
    assert loss(Value(2.0), numpy.array([3.0, math.nan])).data == 6.0
    assert loss.compilations == 1


def test_a_result_that_differs_is_found_by_the_second_call():
    clock, late, numbers = itertools.count(), itertools.count(), random.SystemRandom()
    for function in (
        lambda v: v * next(clock),
        lambda v: v * (next(late) // 2),
        lambda v: v * numbers.random(),
        lambda v: v * time.perf_counter(),
    ):
        loss = zoomgrad.compiled(ENGINE)(function)
        with pytest.warns(NotCompiled, match="when it runs as it is"):
            assert loss(Value(1.0)).data != loss(Value(1.0)).data


def test_gradients_are_checked():
    """The function runs as it is, and is traced, on two graphs with the same result."""
    runs = itertools.count()
    loss = zoomgrad.compiled(ENGINE)(lambda v: v * v if next(runs) == 0 else v * 2.0)
    with pytest.warns(NotCompiled, match="a gradient is 4.0 when it runs as it is, but a gradient is 2.0 compiled"):
        loss(Value(2.0))


def test_a_function_that_waits_for_another_thread():
    inner, results, waits = zoomgrad.compiled(ENGINE)(lambda v: v * 3.0), [], []

    def loss(v):
        thread = threading.Thread(target=lambda: results.append(inner(Value(2.0)).data), daemon=True)
        thread.start()
        thread.join(10)
        waits.append(thread.is_alive())
        return v * 2.0

    assert zoomgrad.compiled(ENGINE, strict=True)(loss)(Value(2.0)).data == 4.0
    assert results == [6.0, 6.0] and not any(waits)


# --- random functions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [ENGINE, "tcc"])
def test_random_functions(name):
    pytest.importorskip("numpy")
    from tests.zoomgrad.random_functions import differs

    engine, ran = zoomgrad.load(usable(name)), 0
    for seed in range(60):
        text, compiled = differs(seed, engine)
        ran += compiled
        assert text == ""
    assert ran >= 5
