"""One line compiles a loss function, with the bits of the function itself."""

import copy
import os
import pickle
import random
import subprocess
import sys
import warnings
from array import array
from collections import namedtuple
from dataclasses import replace

import pytest

import zoomgrad
from tests.engines.graphs import bits
from zoomgrad import engines
from zoomgrad.decorator import Compiled, NotCompiled
from zoomgrad.engines import nn
from zoomgrad.engines.graph.value import Value as PythonValue
from zoomgrad.signature import NotTraced

ENGINE = "python-source"
NATIVE = zoomgrad.Value


@pytest.fixture(
    params=[NATIVE, PythonValue] if NATIVE is not PythonValue else [PythonValue], ids=lambda v: v.__module__
)
def engine(request):
    """An engine of our own whose graphs are of that class."""
    engine = replace(engines.load(ENGINE))
    vars(engine)["Value"] = request.param
    return engine


def compile_with(engine, function, *, strict=True, variants=8):
    return Compiled(function, engine, strict, variants)


def agree(engine, function, *calls):
    """The compiled function gives what the function gives, call by call, whether it runs compiled or not."""
    loss = compile_with(engine, function, strict=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCompiled)
        for call in calls:
            assert bits([loss(*call).data]) == bits([function(*call).data])
    return loss


# --- the same bits ---------------------------------------------------------------------------------------------------


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
    ours, plain = (nn.bind(value).MLP(2, [4, 1], rng=random.Random(7)) for _ in range(2))
    for step in range(6):
        if step % 3 == 0:
            ours.zero_grad()
            plain.zero_grad()
        total, scores = loss(ours, X, y)
        expected, plain_scores = demo(plain, [list(map(float, row)) for row in X], [int(each) for each in y], value)
        total.backward()
        expected.backward()
        assert bits([total.data, *(s.data for s in scores)]) == bits([expected.data, *(s.data for s in plain_scores)])
        assert [p.grad for p in ours.parameters()] == [p.grad for p in plain.parameters()]
        for p in (*ours.parameters(), *plain.parameters()):
            p.data -= 0.1 * p.grad
    assert (loss.calls, loss.compilations) == (6, 1)


def test_every_container_of_values_and_data_is_taken(engine):
    a, b = engine.Value(2.0), engine.Value(3.0)

    def loss(p, q, x, name=None):
        return p["w"][0] * x["n"] + p["b"] * q + (q * x["row"][1] if name == "long" else 0)

    got = compile_with(engine, loss)({"w": (a,), "b": b}, a, {"n": 2, "row": [1, 5]}, name="long")
    got.backward()
    assert (got.data, a.grad, b.grad) == (20.0, 10.0, 2.0)


def test_a_backward_pass_repeats_what_the_function_would_do(engine):
    """After another call, after an update, and twice: intermediate gradients then add up, as in micrograd."""
    shown = []
    for wrap in (lambda f: f, lambda f: compile_with(engine, f)):
        w, function = engine.Value(3.0), wrap(lambda w, x: w * w * x)
        first, second = function(w, 2.0), function(w, 10.0)
        for loss, number in ((first, 3.0), (second, 5.0), (second, 3.0), (first, 7.0)):
            w.data = number
            loss.backward()
            shown.append((loss.data, w.grad))
        (first * 2.0).backward()
        shown.append((first.grad, w.grad))
    assert shown[:5] == shown[5:]
    xs, w = [2.0], engine.Value(3.0)
    loss = compile_with(engine, lambda w, xs: w * xs[0])(w, xs)
    w.data, xs[0] = 5.0, 7.0
    with pytest.raises(RuntimeError, match=r"has changed\n  Use the loss before"):
        loss.backward()
    if hasattr(engine.Value, "_restore"):
        for copied in copy.copy(loss), copy.deepcopy(loss):
            with pytest.raises(TypeError, match=r"a copy of .* can't pass gradients on\n  Call backward"):
                copied.backward()


# --- losses in other expressions, and of other expressions -----------------------------------------------------------


def mse(predictions, targets):
    return sum((p - t) ** 2 for p, t in zip(predictions, targets))


def test_a_loss_of_predictions_has_the_bits_of_the_whole_graph(engine):
    """The gradients below the arguments are summed in the order of the whole graph."""
    numbers, loss = random.Random(3), compile_with(engine, mse)
    ours, plain = (nn.bind(engine.Value).MLP(2, [3, 4], rng=random.Random(7)) for _ in range(2))
    for _ in range(6):
        x, y = [numbers.uniform(-1, 1) for _ in range(2)], [numbers.uniform(-1, 1) for _ in range(4)]
        for model, function in ((ours, loss), (plain, mse)):
            total = function(model(x), y)
            total.backward()
            for p in model.parameters():
                p.data -= 0.1 * p.grad
        assert bits(p.grad for p in ours.parameters()) == bits(p.grad for p in plain.parameters())
    assert (loss.calls, loss.compilations) == (6, 1)


USES = (
    lambda loss, w: loss + w * w,
    lambda loss, w: 0.5 * loss - 1.0,
    lambda loss, w: loss**2 / w,
    lambda loss, w: (-loss).exp(),
    lambda loss, w: sum([w, loss, loss]),
)


@pytest.mark.parametrize("at", range(len(USES)))
def test_a_loss_is_an_operand_of_other_expressions(engine, at):
    """Their gradients may be summed in another order."""
    shown = []
    for wrap in (lambda f: f, lambda f: compile_with(engine, f)):
        function, w = wrap(lambda w, x: w * x + w), engine.Value(0.75)
        for x in (2.0, 3.0):
            total = USES[at](function(w, x), w)
            total.backward()
            shown += [total.data, w.grad]
    assert shown[:4] == pytest.approx(shown[4:], rel=1e-14)
    assert function.calls == 2


@pytest.mark.parametrize("of", [lambda w: [w, w * 2.0], lambda w: [p := w * 2.0, p * p], lambda w: [w * w, w]])
def test_arguments_that_overlap(engine, of):
    ours, plain = engine.Value(1.5), engine.Value(1.5)
    compile_with(engine, mse)(of(ours), [1.0, 2.0]).backward()
    mse(of(plain), [1.0, 2.0]).backward()
    assert ours.grad == pytest.approx(plain.grad, rel=1e-14)


def test_the_gradient_of_a_result_beside_the_loss_is_the_functions(engine):
    ours, plain = engine.Value(1.5), engine.Value(1.5)
    function = lambda w: (w * w, w * 3.0)  # noqa: E731
    sum(compile_with(engine, function)(ours)).backward()
    sum(function(plain)).backward()
    assert ours.grad == plain.grad == 6.0


# --- state ------------------------------------------------------------------------------------------------------------


def test_momentum_on_values_keeps_the_program(engine, monkeypatch):
    """An attribute of a Value that the function does not read may change, and a global name like an attribute."""
    monkeypatch.setitem(globals(), "w", -1.0)

    class Weight(engine.Value):
        pass

    model = type("Model", (), {})()
    model.w = Weight(0.5)
    loss = compile_with(engine, lambda model, x: model.w * x)
    for step in range(12):
        model.w.m = globals()["w"] = float(step)
        loss(model, 2.0)
    assert (loss.calls, loss.compilations) == (12, 1) and "traces: 1" in loss.report()


def test_an_attribute_that_changes_at_each_call(engine):
    model = type("Model", (), {})()
    model.w, model.scale = engine.Value(0.5), 1.0
    loss = compile_with(engine, lambda model: model.w * model.scale, strict=False)
    with pytest.warns(NotCompiled, match=r"what its arguments hold changed 8 times\n  .*keep elsewhere") as caught:
        for _ in range(20):
            model.scale += 1.0
            assert loss(model).data == 0.5 * model.scale
    assert len(caught) == 1 and loss.compilations == 8


def test_a_value_that_is_an_argument_and_a_global(engine):
    for first in (engine.Value(3.0), engine.Value(5.0)):
        captured = engine.Value(3.0)
        loss = compile_with(engine, lambda w, c=captured: w * c, strict=False)
        for w in (first, captured, first, captured):
            captured.grad = 0
            total = loss(w)
            total.backward()
            assert total.data == w.data * 3.0 and captured.grad == (6.0 if w is captured else w.data)


def test_variants_are_bounded_and_reported(engine):
    def total(w, xs, kind):
        return sum((w * x for x in xs), w)

    loss = compile_with(engine, total, variants=2)
    w = engine.Value(2.0)
    for length in (1, 2, 3, 2):
        assert loss(w, [1.0] * length, "sum").data == 2.0 + 2.0 * length
    loss(w, [1.0, 2.0], "mean")
    assert (loss.calls, loss.compilations) == (3, 4)
    assert loss.report() == (
        "total: python-source, 2 of at most 2 variants\n"
        "  calls: 2, parameters: 1, traces: 1\n"
        "  calls: 1, parameters: 1, traces: 1"
    )


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
    assert run(engine.Value(2.0), [4.0]).data == 8.0 and run.compilations == 1


def test_a_compiled_function_may_call_another(engine):
    inner = compile_with(engine, lambda w, x: w * x)
    outer = compile_with(engine, lambda w, x: inner(inner(w, x), x))
    assert outer(engine.Value(3.0), 2.0).data == 12.0 and inner.compilations == 0


def test_a_method_is_compiled_for_each_object(engine):
    class Model:
        def __init__(self, scale):
            self.w = engine.Value(scale)

        loss = compile_with(engine, lambda self, x: self.w * x)

    two, three = Model(2.0), Model(3.0)
    assert [two.loss(5.0).data, three.loss(5.0).data, two.loss(1.0).data] == [10.0, 15.0, 2.0]


@zoomgrad.compiled(ENGINE)
def at_the_top(w):
    return w * w


def test_a_compiled_function_is_pickled_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, at_the_top.__module__, sys.modules[__name__])
    assert pickle.loads(pickle.dumps(at_the_top)) is at_the_top is copy.deepcopy(at_the_top)


# --- arguments -------------------------------------------------------------------------------------------------------


class Stranger:
    """A Value of another micrograd."""

    def __init__(self, data):
        self.data, self.grad = data, 0

    def __add__(self, other):
        return Stranger(self.data + other.data)

    __mul__ = __add__

    def backward(self):
        pass


class Odd(float):
    """A number with an operator of its own."""

    def __pow__(self, other):
        return 7.0


class Answering:
    """An object with every attribute."""

    def __getattr__(self, name):
        return self


itself = []
itself.append(itself)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (Stranger(1.0), "only zoomgrad's Value"),
        ([Stranger(1.0)], "only zoomgrad's Value"),
        (iter([1.0]), "neither data nor a constant"),
        ({1.0, 2.0}, "neither data nor a constant"),
        (array("d", [1.0]), "neither data nor a constant"),
        (2**60 + 1, "not exact as a double"),
        (Odd(1.5), "computes in its own way"),
        (Answering(), r"can't be taken apart \(TypeError"),
        (itself, r"can't be taken apart \(RecursionError"),
    ],
)
def test_an_argument_that_can_not_be_taken_is_named(engine, argument, message):
    with pytest.warns(NotCompiled, match=f"{message}.*\n  ") as caught:
        assert compile_with(engine, lambda w, x: w * 2.0, strict=False)(engine.Value(1.0), argument).data == 2.0
    assert caught[0].filename == __file__
    with pytest.raises(NotTraced, match=message):
        compile_with(engine, lambda w, x: w)(engine.Value(1.0), argument)


def test_results_beside_the_loss(engine):
    """Containers, numbers and arrays of doubles are returned anew; a number that changes is found by the check."""
    np, numbers = pytest.importorskip("numpy"), iter([2.0, 2.0, 2.0, 3.0])
    for x in (np.float32(1.5), np.ones(2, np.float32)):
        with pytest.raises(NotTraced, match=r"float32.*\n  Convert it: "):
            compile_with(engine, lambda w, x: w * 2.0)(engine.Value(1.0), x)
    run = compile_with(engine, lambda w, x: (w * x, [w, {1: w + x}], 7, "text", np.array([[1.5, 2.0]])))
    w = engine.Value(3.0)
    for x in (2.0, 4.0):
        loss, (same, by_key), number, text, array = run(w, x)
        assert same is w and (loss.data, by_key[1].data, number, text) == (3.0 * x, 3.0 + x, 7, "text")
        assert array.dtype == float and array.tolist() == [[1.5, 2.0]]
    with pytest.raises(NotTraced, match="it returns a PAIR beside the loss"):
        compile_with(engine, lambda w: PAIR(w * w, w))(w)
    with pytest.warns(NotCompiled, match=r"a result is 3.0 when it runs as it is, but a result is 2.0 compiled"):
        stale = compile_with(engine, lambda w: (w * w, next(numbers)), strict=False)
        assert [stale(w)[1] for _ in range(3)] == [2.0, 2.0, 3.0]


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


PAIR = namedtuple("PAIR", "a b")


def test_arguments_that_are_equal_and_differ(engine):
    v, w = engine.Value(2.0), engine.Value(7.0)
    agree(engine, lambda rows: rows[0][0] * (2.0 if isinstance(rows[0], PAIR) else 3.0), [[(v, w)]], [[PAIR(v, w)]])
    for keys in ((1, True), ((1, "a"), (True, "a"))):
        agree(engine, lambda d: sum(v * len(str(k)) for k, v in d.items()), *([{key: v}] for key in keys))
    agree(engine, lambda d, p: sum(k * x for k, x in d.items()) * p, [{v: 2.0}, v], [{v: 2.0}, w])
    agree(engine, lambda w, n: w * (2 if isinstance(n, int) else 3), [w, 3], [w, 3.0])
    agree(engine, lambda w, a, b, c: w * (a * b - c), [w, 1, 2, 3], [w, 2**27 + 1, 2**27 + 1, 2**54])


def test_ints_that_doubles_would_round_inside_the_graph(engine):
    V = engine.Value
    large = [V(2**40), V(2**40 + 1)]
    agree(engine, lambda a, b: (a * b + 1 - a * b) * 2.5, [V(2.0), V(3.0)], large, [V(2), V(3)])
    agree(engine, lambda a, b: (a**30 + 1 - b**30) * 0.5, [V(2.0), V(3.0)], [V(7), V(7)], [V(2), V(3)])


# --- engines ---------------------------------------------------------------------------------------------------------


def usable(name):
    try:
        engines.load(name).check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    return name


@pytest.mark.parametrize("name", ["rerolled-clang-fast", "clang-O1+fma"])
def test_engines_that_are_not_strict_are_checked_within_their_bound(name):
    w, other = zoomgrad.Value(0.5), zoomgrad.Value(0.5)
    loss = zoomgrad.compiled(usable(name), strict=True)(lambda ws, xs: sum((w * x for w, x in zip(ws, xs)), 0.5) ** 2)
    for _ in range(4):
        assert loss([w, other], [0.1, 0.7]).data == pytest.approx((0.05 + 0.35 + 0.5) ** 2, rel=1e-9)
    assert loss.calls == 4


@pytest.mark.parametrize("name", [ENGINE, "tcc", "rerolled-tcc", "rerolled-machine", "bytecode", "rerolled-numpy"])
def test_each_structure_is_compiled_when_it_is_first_met(name):
    """The longer graphs use more parameters, in another order."""

    def recurrent(ws, xs):
        state = ws[0]
        for w, x in zip(ws[3:], xs):
            state = (ws[1] * state + w * x).tanh()
        return (state - ws[2]) ** 2, state

    ours, plain = ([zoomgrad.Value(0.1 * n - 0.4) for n in range(9)] for _ in range(2))
    loss = zoomgrad.compiled(usable(name), strict=True)(recurrent)
    for step in range(12):
        xs = [0.1 * step - 0.2 * n for n in range((3, 6, 4)[step % 3])]
        total, expected = loss(ours, xs), recurrent(plain, xs)
        total[0].backward()
        expected[0].backward()
        assert bits([v.data for v in total]) == bits([v.data for v in expected])
        assert [v.grad for v in ours] == [v.grad for v in plain]
        assert (loss.calls, loss.compilations) == (step + 1, min(step + 1, 3))


@pytest.mark.parametrize("name", ["tcc", ENGINE])
@pytest.mark.parametrize(("exponent", "number"), [(0.5, 0.0), (-1, 1e-200), (0, 0.0)])
def test_an_error_of_the_backward_pass_is_raised(name, exponent, number):
    """C computes infinity there."""
    loss, v = zoomgrad.compiled(usable(name), strict=True)(lambda v: v**exponent), zoomgrad.Value(1.0)
    loss(v)
    v.data = number
    with pytest.raises((ArithmeticError, ValueError)):
        loss(v).backward()
    assert v.grad == 0 and loss.calls == 2


def test_the_default_engine_needs_no_compiler(monkeypatch):
    usable("rerolled-machine")
    program = "import zoomgrad; f = zoomgrad.compiled()(lambda w, x: w * x); f(zoomgrad.Value(2.0), 3.0); print(f)"
    environment = {**os.environ, "PATH": "/", "ZOOMGRAD_CACHE": "off", "ZOOMGRAD_TCC": "/"}
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True)
    assert b"compiled by rerolled-machine" in done.stdout, done.stderr

    def refuse():
        raise engines.Unavailable("no vectors", "Use another engine.")

    monkeypatch.setattr("zoomgrad.engines.machine.target.check", refuse)
    assert zoomgrad.load().name == "tcc"
