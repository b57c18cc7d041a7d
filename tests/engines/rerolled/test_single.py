"""Recovered loops in float32: the programs' buffers, hostile numbers, and the derived bounds."""

from __future__ import annotations

import math
from array import array
from struct import pack, unpack

import pytest

pytest.importorskip("numpy")

import engines
from engines.api import Unavailable, WrongSuffix
from engines.rerolled.bounded import Arithmetic, Bounded
from harness import workloads
from harness.procedure import DRILLS
from harness.worker.evidence import drill, rows_of
from tests.engines.compiled.compiling import usable

ENGINES = ("rerolled-gcc-f32", "rerolled-clang-f32", "rerolled-clang-sparse-f32", "rerolled-clang-fast-f32")

EACH = (ENGINES[0], *(pytest.param(name, marks=pytest.mark.host) for name in ENGINES[1:]))


def rounded(numbers):
    return [unpack("f", pack("f", x))[0] for x in numbers]


def line(name, w=0.1, outputs=True):
    """A program for the loss (w * x + 0.3)**2."""
    engine = usable(name)
    x, parameter = engine.Value(0.7), engine.Value(w)
    out = parameter * x + 0.3
    return engine.compile(out**2, inputs=[x], parameters=[parameter], outputs=[out] if outputs else [])


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        *((ENGINES[0], name) for name in ("digits", "tour", "mlp-40x16x4")),
        *(pytest.param(name, "digits", marks=pytest.mark.host) for name in ENGINES[1:]),
    ],
)
def test_every_number_of_a_drill_is_within_its_derived_bound(name, workload):
    engine, workload = usable(name), workloads.load(workload)
    trainer, reference = (one.prepare(workload) for one in (engine, engines.load("rerolled-numpy")))
    derived = engine.bounds(workload)
    for how in DRILLS:
        bounds = derived.of(rows_of(workload, how), batch=how.batch, steps=sum(how.pieces))
        for ours, theirs, limits in zip(drill(trainer, workload, how), drill(reference, workload, how), bounds):
            assert len(ours) == len(theirs) == len(limits)
            assert all(abs(x - y) <= limit for x, y, limit in zip(ours, theirs, limits))
        if how.name == "short":  # the bounds are no wider than they must be
            assert max(bounds.losses[:2]) < 0.05
            assert max(bounds.parameters) < 0.01


def test_only_float32_has_derived_bounds():
    assert engines.load("rerolled-gcc").bounds(workloads.load("xor")) is None


@pytest.mark.parametrize("name", EACH)
def test_training_computes_what_the_passes_one_by_one_compute(name):
    trained, by_hand = line(name), line(name)
    rows = [[0.1], [0.7], [-1.3]]
    losses = trained.train(rows, rate=0.3, batch=2, steps=6)
    for step in range(6):
        by_hand.set_input(rows[step % 3])
        assert by_hand.forward() == losses[step]
        by_hand.backward()
        if step % 2:
            by_hand.update(0.3, 2)
    assert list(trained.parameters) == list(by_hand.parameters) == rounded(trained.parameters)


def test_parameters_stay_doubles_until_an_update_changes_them():
    program = line("rerolled-gcc-f32", w=0.1)
    program.predict([[0.5]])
    program.accumulate([[0.5]])
    program.train([[0.5]], rate=0.0, batch=2)
    assert list(program.parameters) == [0.1]
    program.train([[0.5]], rate=0.0)
    assert list(program.parameters) == rounded([0.1])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1e39, math.inf),  # beyond the range of float32
        (math.nan, math.nan),
        (-math.inf, -math.inf),
        (1e-40, rounded([1e-40])[0]),  # subnormal in float32
        (1e-50, 0.0),
    ],
)
def test_numbers_that_float32_rounds_far_follow_ieee_754(given, expected):
    engine = usable("rerolled-gcc-f32")
    x, w = engine.Value(1.0), engine.Value(given)
    program = engine.compile(w * x, inputs=[x], parameters=[w], outputs=[w * x])
    assert pack("d", program.forward()) == pack("d", expected)
    assert pack("d", program.predict([[1.0]])[0][0]) == pack("d", expected)


def test_a_constant_beyond_float32_is_refused():
    engine = usable("rerolled-gcc-f32")
    x = engine.Value(1.0)
    with pytest.raises(Unavailable, match=r"1e\+39 is too large for float32\n  Use the engine without"):
        engine.compile(x * 1e39, inputs=[x], parameters=[])
    for count in (1, 40):
        leaves = [engine.Value(0.5) for _ in range(count)]
        with pytest.raises(Unavailable, match=r"1e\+39 is too large"):
            engine.compile(sum((x**1e39 for x in leaves), engine.Value(0.0)), inputs=leaves, parameters=[])


@pytest.mark.parametrize("name", ["rerolled-clang-f32-fma", "rerolled-tcc-f32", "clang-O1-f32", "rerolled-numpy-f32"])
def test_other_names_are_refused_with_a_remedy(name):
    with pytest.raises((WrongSuffix, LookupError), match="f32"):
        engines.load(name)


def test_c_in_float32_computes_nothing_in_doubles():
    """A double constant would silently widen an expression."""
    source = usable("rerolled-gcc-f32")
    x, w = source.Value(0.5), source.Value(0.5)
    loss = (w * x + 0.25).tanh() * 0.1 + (w * 3.0).exp()
    tape = source.tape(loss, inputs=[x], parameters=[w])
    text = source.source(source.lower(tape))
    assert "0.25f" in text
    assert "#define tanh(a) ((number)tanh(a))" in text


def test_bounds_hold_for_any_operands():
    """Each primitive, at both ends of each operand's range."""
    do = Arithmetic(is_ordered=True)
    functions = {"exp": math.exp, "log": math.log, "tanh": math.tanh}
    for name, function in functions.items():
        for x, e in ((0.5, 0.1), (2.0, 1.5), (0.01, 1e-3)):
            found = getattr(do, name)(Bounded(*map(do.np.asarray, (x, e))))
            assert all(abs(function(end) - found.x) <= found.e for end in (x - e, x + e))
    pairs = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "pow": pow}
    pairs["div"] = lambda a, b: a / b
    for name, function in pairs.items():
        for a, b in (((2.0, 0.5), (3.0, 0.25)), ((1.5, 1.0), (-2.0, 0.5)), ((0.3, 0.1), (0.5, 0.1))):
            found = getattr(do, name)(*(Bounded(*map(do.np.asarray, one)) for one in (a, b)))
            ends = [(a[0] + i * a[1], b[0] + j * b[1]) for i in (-1, 0, 1) for j in (-1, 0, 1)]
            assert all(abs(function(*end) - found.x) <= found.e for end in ends), name
    assert do.mul(do.stored(3e30), do.stored(3e30)).e == math.inf


@pytest.mark.parametrize("is_ordered", [True, False])
def test_there_is_no_bound_where_a_step_on_the_way_overflows(is_ordered):
    do = Arithmetic(is_ordered=is_ordered)
    assert do.total([do.stored([3e38, 3e38, -3e38])]).e == math.inf
    assert do.total([do.stored([1e38, 1e38, -1e38])]).e < math.inf
    with do.np.errstate(all="ignore"):  # 0.0 times infinity in float32
        assert do.mul(do.stored(0.0), do.stored(1e39)).e == math.inf
    assert do.mul(do.stored(0.0), do.stored(1e38)).e == 0.0


def test_a_sum_in_any_order_has_a_wider_bound():
    numbers = array("d", [1.0, -1.0, 1e-3, 1.0, -1.0])
    ordered, other = (Arithmetic(is_ordered=flag) for flag in (True, False))
    assert ordered.total([ordered.stored(numbers)]).e < other.total([other.stored(numbers)]).e < 1e-5
