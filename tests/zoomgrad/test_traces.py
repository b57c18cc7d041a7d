"""What a trace can't see, and what it leaves behind: each case gives what the function gives when it runs as it is."""

import contextlib
import functools
import random
import threading
import time
import warnings
import zlib

import pytest

import zoomgrad
from zoomgrad import engines
from zoomgrad.decorator import NotCompiled
from zoomgrad.variant import NotTraced

Value = zoomgrad.Value
ENGINE = "python-source"


def both(function, calls, name=ENGINE):
    """The results of a function and of the compiled one. calls: arguments, or functions that change something."""
    shown = []
    for made in (function, zoomgrad.compiled(name)(function)):
        shown.append([])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCompiled)
            for call in calls:
                result = made(*call)
                results = result if isinstance(result, tuple) else (result,)
                shown[-1] += [each.data if hasattr(each, "backward") else each for each in results]
    return shown


def changed(function, change):
    """The results of the compiled function and of the function, after a change that follows the first call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCompiled)
        loss, w = zoomgrad.compiled(ENGINE)(function), Value(2.0)
        before = loss(w).data
        assert before == function(w).data
        change()
        assert loss(w).data == function(w).data != before


# --- branches by exception -------------------------------------------------------------------------------------------


def by_try(w, x):
    try:
        y = (w * x).log()
    except ValueError:
        y = w * 100.0
    return y * w


def by_suppress(w, x):
    y = w * 100.0
    with contextlib.suppress(ValueError):
        y = (w * x).log()
    return y * w


def by_division(w, x):
    try:
        return w / (w * (x + -1.0 * w) + w)
    except ZeroDivisionError:
        return w * 7.0


def by_power(w, x):
    try:
        return (w * x).relu() ** -1
    except (ArithmeticError, ValueError):  # PyPy's math.pow raises another error
        return w * 7.0


def by_overflow(w, x):
    try:
        return (-2000.0 * w * x).exp()
    except OverflowError:
        return w * 7.0


def by_everything(w, x):
    try:
        return (w * x).log()
    except BaseException:  # also what ends a trace
        return w * 7.0


def by_an_unused_result(w, x):
    try:
        (w * x).log()
    except ValueError:
        return w * 7.0
    return w * x


BRANCHES = (by_try, by_suppress, by_division, by_power, by_overflow, by_everything, by_an_unused_result)


@pytest.mark.parametrize("xs", [(-1.0, 2.0, 3.0), (2.0, -1.0, 3.0)])
@pytest.mark.parametrize("function", BRANCHES)
def test_a_branch_by_exception(function, xs):
    plain, compiled = both(function, [(Value(0.5), x) for x in xs])
    assert plain == compiled


@pytest.mark.parametrize("function", [by_try, by_suppress, by_power, by_overflow, by_everything])
def test_a_branch_by_exception_is_refused_with_its_place(function):
    with pytest.raises(NotTraced, match=r"it gets \w+Error from \w+ in by_\w+, line \d+ of test_traces.py\n  Keep the"):
        zoomgrad.compiled(ENGINE, strict=True)(function)(Value(0.5), -1.0)


# --- engines that are not strict -------------------------------------------------------------------------------------


class Odd(float):
    """A number with an operator of its own."""

    def __pow__(self, other):
        return 7.0


@pytest.mark.parametrize("name", ["tcc", "rerolled-clang-fast", "clang-O1-fma"])
def test_every_engine_is_checked(name):
    try:
        engines.load(name).check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    w, other = Value(0.5), Value(0.5)
    for function, x in ((lambda w, x: (w - x) / x, Odd(2.0)), (lambda w, x: (w * x, x), 1.5)):
        plain, compiled = both(function, [(w, x)], name)
        assert plain == pytest.approx(compiled, rel=1e-9)
    assert type(zoomgrad.compiled(name)(lambda w, x: (w * x, x))(w, 1.5)[1]) is float
    loss = zoomgrad.compiled(name, strict=True)(lambda ws, xs: sum((w * x for w, x in zip(ws, xs)), 0.5) ** 2)
    assert loss([w, other], [0.1, 0.7]).data == pytest.approx((0.05 + 0.35 + 0.5) ** 2, rel=1e-9)
    assert loss.cache_info().calls == 1


# --- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda w, x: w * x.ravel("K")[1],
        lambda w, x: w * x.reshape(-1, order="A")[1],
        lambda w, x: w * x.T.reshape(-1)[1],
    ],
)
@pytest.mark.parametrize("first", ["C", "F"])
def test_the_memory_order_of_arrays(function, first):
    np = pytest.importorskip("numpy")
    rows, w = np.arange(6.0).reshape(2, 3), Value(1.0)
    plain, compiled = both(function, [(w, np.array(rows, order=order)) for order in (first, "C", "F", "C")])
    assert plain == compiled
    loss = zoomgrad.compiled(ENGINE, strict=True)(function)
    assert loss(w, np.array(rows, order=first)).data == function(w, np.array(rows, order=first)).data


VIEWS = {
    "axes in another order": lambda np, x: x.transpose(2, 0, 1),
    "gaps": lambda np, x: np.asfortranarray(x)[::2],
    "gaps and a last axis": lambda np, x: x[:, 0, :2].T,
    "backwards": lambda np, x: x[::-1, ::-1, ::-1],
    "backwards by columns": lambda np, x: np.asfortranarray(x)[::-1],
    "repeated": lambda np, x: np.broadcast_to(x[0, 0], (3, 4)),
    "overlapping": lambda np, x: np.lib.stride_tricks.sliding_window_view(x[0], 2, axis=0),
    "an axis of one": lambda np, x: x[:1].T,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_the_memory_order_of_a_view(view):
    """The first call's entries are equal, so the check of its result does not notice another order."""
    np = pytest.importorskip("numpy")
    w = Value(1.0)
    for function in (
        lambda w, x: w * x.ravel("K")[1] + w * x.ravel("K")[2] * 10,
        lambda w, x: w * x.reshape(-1, order="A")[1],
        lambda w, x: w * x.copy("A").ravel("K")[1],
    ):
        loss = zoomgrad.compiled(ENGINE, strict=True)(function)
        loss(w, view(np, np.ones((2, 3, 4))))
        x = view(np, np.arange(24.0).reshape(2, 3, 4))
        assert loss(w, x).data == function(w, x).data


@pytest.mark.parametrize("of", [lambda np: np.float32(1.5), lambda np: np.ones(2, np.float32), lambda np: Odd(1.5)])
def test_a_number_that_is_no_double_is_named_with_the_remedy(of):
    np = pytest.importorskip("numpy")
    x = of(np)
    with pytest.warns(NotCompiled, match=r"an argument is an? (array of )?(float32|Odd).*\n  Convert it: "):
        zoomgrad.compiled(ENGINE)(lambda w, x: w * 2.0)(Value(1.0), x)


# --- what a trace leaves behind --------------------------------------------------------------------------------------


def drawing():
    """Functions that draw random numbers, each from a generator of its own."""
    own = random.Random(3)
    makers = {
        "random": lambda w: w * random.random(),
        "uniform": lambda w: w * random.uniform(1, 2),
        "own": lambda w: w * own.random(),
        "from C": lambda w: w * next(map(own.choice, [(1.0, 2.0)])),
    }
    with contextlib.suppress(ImportError):
        import numpy as np

        generator = np.random.default_rng(3)
        makers["numpy"] = lambda w: w * np.random.rand()
        makers["generator"] = lambda w: w * generator.normal()
    return makers


@pytest.mark.parametrize("name", drawing())
def test_draws_are_not_used_up(name):
    shown = []
    for wrap in (lambda f: f, zoomgrad.compiled(ENGINE)):
        random.seed(0)
        with contextlib.suppress(ImportError):
            import numpy as np

            np.random.seed(0)
        function = wrap(drawing()[name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCompiled)
            shown.append([function(Value(0.5)).data for _ in range(4)])
    assert shown[0] == shown[1]


@pytest.mark.parametrize("lock", [threading.Lock(), threading.RLock(), threading.Semaphore()])
def test_a_lock_is_not_left_locked(lock):
    def guarded(w, x):
        lock.acquire()
        y = w * x
        if y.data > 0:
            y = y * 2.0
        lock.release()
        return y

    plain, compiled = both(guarded, [(Value(0.5), x) for x in (1.0, -1.0)])
    assert plain == compiled


TOTAL = 0.0


class Counter:
    """Counts in every way that an object can."""

    everyone = 0
    __slots__ = ("__dict__", "slot")

    def __init__(self):
        self.slot, self.own, self.kept, self.named, self.members = 0, 0, [], {}, {0}


def counting():
    """Functions that count their calls."""
    counter, counts, closed, array_like = Counter(), [0], 0, bytearray(b"0")
    Counter.everyone = 0

    def by_global(w):
        global TOTAL
        TOTAL += 1.0
        return w * TOTAL

    def by_closure(w):
        nonlocal closed
        closed += 1
        return w * closed

    def by_class(w):
        Counter.everyone += 1
        return w * Counter.everyone

    def by_slot(w):
        counter.slot += 1
        return w * counter.slot

    def by_attribute(w):
        counter.own += 1
        counter.new = counter.own
        return w * counter.own

    def by_list(w):
        counts[0] += 1
        counter.kept.append(w)
        return w * (counts[0] + len(counter.kept))

    def by_dict(w):
        counter.named[len(counter.named)] = 1.0
        return w * sum(counter.named.values())

    def by_set(w):
        counter.members.add(len(counter.members))
        return w * len(counter.members)

    def by_bytes(w):
        array_like.append(1)
        return w * len(array_like)

    def before_a_look(w):
        counts[0] += 1
        return w * counts[0] * (2.0 if w.data > 0 else 3.0)

    return by_global, by_closure, by_class, by_slot, by_attribute, by_list, by_dict, by_set, by_bytes, before_a_look


@pytest.mark.parametrize("at", range(len(counting())), ids=[each.__name__ for each in counting()])
def test_a_count_is_put_back(at):
    shown = []
    for wrap in (lambda f: f, zoomgrad.compiled(ENGINE)):
        globals()["TOTAL"] = 0.0
        function = wrap(counting()[at])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCompiled)
            shown.append([function(Value(0.5)).data for _ in range(4)])
    assert shown[0] == shown[1]


def test_a_count_is_put_back_while_another_thread_waits():
    """As in a notebook, whose threads wait in the background."""
    end = threading.Event()
    waiting = threading.Thread(target=end.wait)
    waiting.start()
    try:
        test_a_count_is_put_back(0)
    finally:
        end.set()
        waiting.join()


def test_a_function_that_can_not_be_compiled_runs_once_for_each_call():
    for refused in (lambda w: time.time(), lambda w: w.data, lambda w: 0.0 if w.data > 0 else 1.0):
        w, count = Value(2.0), []

        def loss(w, refused=refused, count=count):
            count.append(1)
            (w * w).backward()
            return w * float(refused(w))

        with pytest.warns(NotCompiled):
            zoomgrad.compiled(ENGINE)(loss)(w)
        assert (w.grad, len(count)) == (4.0, 1)


# --- state behind objects --------------------------------------------------------------------------------------------


class Sub(Value):
    """A Value with an attribute of its class."""

    __slots__ = ()
    power = 2


class Clipped(Value):
    """A Value with a backward pass of its own."""

    __slots__ = ()

    def backward(self):
        super().backward()
        for v in self.topo():
            v.grad = min(v.grad, 5.0)


def scaled(w, by):
    return w * by


class Holder:
    """Has attributes."""


def hidden():
    """Functions, and changes of what they use."""
    part, error, sub = functools.partial(scaled, by=2.0), BaseException(2.0), Sub(2.0)
    stream = zlib.decompressobj()
    return {
        "partial": (lambda w: part(w), lambda: part.keywords.update(by=3.0)),
        "another function": (lambda w: part(w), lambda: part.__setstate__((lambda w, by: w * 9.0, (), {"by": 1}, {}))),
        "arguments of an error": (lambda w: w * error.args[0], lambda: setattr(error, "args", (3.0,))),
        "class of a Value": (lambda w: w * sub**sub.power, lambda: setattr(Sub, "power", Sub.power + 1)),
        "type in C": (
            lambda w: w * (2.0 + len(stream.unused_data)),
            lambda: stream.decompress(zlib.compress(b"") + b"rest"),
        ),
    }


@pytest.mark.parametrize("name", hidden())
def test_state_behind_an_object(name):
    changed(*hidden()[name])


def test_state_behind_the_class_of_an_argument():
    loss, w = zoomgrad.compiled(ENGINE)(lambda w: w**w.power), Sub(3.0)
    before = loss(w).data
    Sub.power += 1
    assert loss(w).data == 3.0**Sub.power != before


def test_a_backward_pass_of_its_own():
    w = Clipped(1.0)
    for exponent in (2.0, 30.0):
        w.data, w.grad = exponent / 2.0, 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCompiled)
            zoomgrad.compiled(ENGINE)(lambda w: Clipped(1.0) * w**2)(w).backward()
        plain = Clipped(exponent / 2.0)
        (Clipped(1.0) * plain**2).backward()
        assert w.grad == plain.grad


def test_momentum_on_values_keeps_the_program():
    """An attribute that the function does not read may change."""

    class Weight(Value):
        pass

    model = Holder()
    model.w = Weight(0.5)
    loss = zoomgrad.compiled(ENGINE, strict=True)(lambda model, x: model.w * x)
    for step in range(12):
        model.w.m = float(step)
        loss(model, 2.0)
    assert loss.cache_info()[:2] == (12, 1) and "traced again" not in loss.report()


# --- random functions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [ENGINE, "tcc"])
def test_random_functions(name):
    pytest.importorskip("numpy")
    from tests.zoomgrad.random_functions import differs

    engine, ran = zoomgrad.load(name), 0
    try:
        engine.check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    for seed in range(60):
        text, compiled, _ = differs(seed, engine)
        ran += compiled
        assert text == ""
    assert ran >= 5
