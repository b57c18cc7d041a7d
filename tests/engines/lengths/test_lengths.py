"""Optimisers, and training over several shapes: every engine has the bits of a plain Python program."""

import contextlib
import ctypes
import itertools
import math
import random
import sys
from array import array
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies

from tests.engines.compiled.compiling import usable
from tests.engines.fused import HAS_512_BITS, NEEDS_512_BITS, NEEDS_FUSED, same
from tests.engines.guarded import at_the_end_of_a_page
from tests.engines.ladder import willing
from tests.examples import examples
from zoomgrad import engines
from zoomgrad.datasets import names
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.graph.expr import Leaf, Literal, call, where
from zoomgrad.engines.graph.optimisers import ADAM, BATCH, MOMENTUM, RATE, SGD, UPDATE, Optimiser, Q, power
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.lengths import in_machine_code, lanes_in_machine_code
from zoomgrad.engines.lengths.conductor import Conductor, ConductorInNumPy, Member
from zoomgrad.engines.lengths.in_machine_code import ConductorInMachineCode
from zoomgrad.engines.lengths.prepare import conductor_of
from zoomgrad.engines.machine import memory, target
from zoomgrad.engines.machine.buffers.functions import PROTOTYPES
from zoomgrad.engines.machine.encode import Assembler, Vec
from zoomgrad.engines.machine.memory import Memory
from zoomgrad.engines.options import Options
from zoomgrad.harness import workloads
from zoomgrad.harness.procedure import every_shape
from zoomgrad.harness.worker.evidence import drill, drills
from zoomgrad.harness.workloads.microgpt import MicroGpt

SMALL = "microgpt-L1-D4-H2-T4"
OPTIMISERS = [SGD, MOMENTUM, ADAM]
NATIVE = pytest.param(
    "native", marks=pytest.mark.skipif(sys.implementation.name != "cpython", reason="an extension type is for CPython")
)
ENGINES = (
    *(NATIVE, "python-source", "tcc-extension"),
    *(pytest.param(name, marks=pytest.mark.host) for name in ("rerolled-numpy", "rerolled-gcc", "rerolled-machine")),
)

MACHINE = Options("loops", target="machine")
PREPARED = {}
"""Trainers, because compiling takes most of the time."""


def trained(engine, workload, pieces=(3, 4), **how):
    key = (engine, workload.name, workload.optimiser.name)
    if key not in PREPARED:
        PREPARED[key] = usable(willing(engine, workload)).prepare(workload)
    trainer = PREPARED[key]
    trainer.restart(**{"batch": workload.batch, **how})
    for steps in pieces:
        trainer.train(steps)
    return trainer


def bits(trainer, row):
    found = (trainer.losses, trainer.gradients(), trainer.parameters(), trainer.predict(row))
    return [part.tobytes() for part in found]


def written_out(workload, steps, batch):
    """Adam as Python text over the Values of `tuple`."""
    value = engines.load("tuple").Value
    model = workload.model(engines.load("tuple").nn)
    params = model.parameters()
    m, v = [0.0] * len(params), [0.0] * len(params)
    for step in range(steps):
        inputs = [value(x) for x in workload.row(step)]
        workload.loss(model, inputs, workload.outputs(model, inputs)).backward()
        if (step + 1) % batch:
            continue
        update = step // batch
        for i, p in enumerate(params):
            grad = p.grad / batch
            m[i] = 0.85 * m[i] + (1 - 0.85) * grad
            v[i] = 0.99 * v[i] + (1 - 0.99) * power(grad, 2)
            m_hat = m[i] / (1 - 0.85 ** (update + 1))
            v_hat = v[i] / (1 - math.pow(0.99, update + 1))
            p.data -= workload.rate(update) * m_hat / (power(v_hat, 0.5) + 1e-8)
            p.grad = 0
    return array("d", [p.data for p in params])


def test_adam_is_its_python_text():
    workload = workloads.load(SMALL)
    assert trained("replay", workload, batch=3).parameters() == written_out(workload, 7, 3)


def test_a_domain_error_of_another_length_is_explained_once():
    """`replay` builds the graph of row 9, the first one of three positions, in the step that uses it."""
    usual = workloads.load(SMALL)
    shorter = replace(usual, loss_of=lambda out, _: (out[0] * 0).log() if len(out) == 3 * names.TOKENS else out[0])
    with pytest.raises(NonFiniteLoss) as error:
        engines.load("replay").prepare(shorter).train(10)
    assert error.value.step == 9
    assert type(error.value.__cause__) is ValueError


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree(engine):
    """Over both shapes, with whole and partial batches, and rows that wrap around."""
    workload = workloads.load(SMALL)
    row = workload.row(1)
    for how in ({}, {"batch": 3}, {"rows": 3, "batch": 2}):
        assert bits(trained(engine, workload, **how), row) == bits(trained("tuple", workload, **how), row), how


class Narrow(MicroGpt):
    """A GPT that reads one parameter if a row has five positions."""

    def __call__(self, tokens):
        return self.parameters()[:1] if len(tokens) == 5 * names.TOKENS else super().__call__(tokens)


@pytest.mark.host
@pytest.mark.parametrize("engine", ["rerolled-gcc", "rerolled-machine"])
def test_lengths_that_read_other_parameters(engine):
    """Parameters stay in the workspace, unless the longest rows leave some out. One loop over rounds has two nests."""
    usual = workloads.load("microgpt-L1-D16-H4-T5")
    narrow = replace(
        usual,
        name="narrow",
        build=lambda nn, rng: Narrow(nn.Neuron.Value, rng, usual.build),
        loss_of=lambda outputs, targets: usual.loss_of(outputs, targets) if outputs[1:] else outputs[0] ** 2,
    )
    for workload, is_in_place in ((usual, True), (narrow, False)):
        own, other = (trained(each, workload, pieces=(20,)) for each in (engine, "replay"))
        assert bits(own, workload.row(1)) == bits(other, workload.row(1))
        assert (len(own._p) > len(own.parameters())) == is_in_place
        assert not any(own._p[place] for place in set(range(len(own._p))) - set(own._places))


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda optimiser: optimiser.name)
def test_every_optimiser(optimiser):
    """On a workload with one shape, too, whose rows are doubles."""
    for name in (SMALL, "xor"):
        workload = replace(workloads.load(name), optimiser=optimiser)
        row = workload.row(0)
        assert bits(trained("tcc", workload), row) == bits(trained("tuple", workload), row), name


def test_the_proof_covers_every_shape():
    """The first drill takes a step on a row of each length."""
    workload = workloads.load("microgpt")
    (first, *_) = drills(workload)
    assert len({len(workload.row(step)) for step in range(sum(first.pieces))}) == len(workload.shapes()) == 14
    found = drill(trained("replay", workloads.load(SMALL)), workloads.load(SMALL), every_shape(2))
    assert len(found.losses) == 2
    assert any(found.gradients)


def test_a_loss_that_is_not_finite():
    """The training stops before the update, in Python and in machine code."""
    workload = workloads.load(SMALL)
    start = trained("tuple", workload, pieces=()).parameters()
    start[:] = array("d", [1e200] * len(start))
    for engine in ("tuple", "python-source", "tcc"):
        with pytest.raises(ArithmeticError):
            trained(engine, workload, parameters=start)


def test_names_of_a_length_that_no_row_has():
    """A model of names with four letters has one graph, of five positions."""
    few = names._divided([*map("".join, itertools.product("ab", repeat=4))])._replace(context=9)
    workload = replace(workloads.load("microgpt-L1-D4-H2-T9"), reader=lambda: few, train_rows=few.train_rows)
    trainer = willing("tcc", workload).prepare(workload)
    with pytest.raises(ValueError, match=r"no training row has 5 numbers\n  Pass .*: 270\."):
        trainer.predict(array("d", bytes(40)))


LANES = [
    pytest.param("numpy", marks=pytest.mark.host),
    pytest.param("machine-1", marks=[pytest.mark.host, NEEDS_FUSED]),
    pytest.param("machine-4", marks=[pytest.mark.host, NEEDS_FUSED]),
    pytest.param("machine-8", marks=[pytest.mark.host, NEEDS_512_BITS]),
]


def conductor(kind, optimiser, buffers):
    """What takes steps: with updates in NumPy, or in machine code for vectors of a width. 1: libm has no lanes."""
    if kind == "numpy":
        pytest.importorskip("numpy")
        return ConductorInNumPy(optimiser, [still()], buffers)
    width = int(kind[-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "native_width", lambda: max(4, width))
        patch.setattr(in_machine_code, "powers_match_libm", lambda: width > 1)
        return conductor_of(optimiser, MACHINE, [still()], buffers)


def still():
    """A member whose passes do nothing, with a loss of 0.0."""
    code, loss = Assembler(), Vec(0, 16)
    code.vector("vxorpd", loss, loss, loss)
    code.plain("ret")
    loaded = Memory(code)
    passes = {name: interface().cast(PROTOTYPES[name], loaded.start) for name in ("set_input", "forward", "backward")}
    kernel, one = Library(SimpleNamespace(memory=loaded, **passes), 1), array("d", [0.0])
    return Member(kernel, SimpleNamespace(columns=[], rows=[0]), one, one, one)


def update(conductor_, index, batch):
    """Make an update with a rate of 0.01. index: from 0."""
    rates, losses = array("d", [0.01]), array("d", [math.nan])
    assert conductor_.take(0, 1, 1, batch, batch - 1, index, rates, losses, True) == 1
    assert losses[0] == 0.0


def differing_updates(kind, optimiser, gradients, batches=(1, 2, 1)):
    """How many numbers differ from those of the update in Python. The buffers end at a page without access."""
    count = len(gradients)
    own, expected = ([at_the_end_of_a_page(count) for _ in ("p", "q", *optimiser.states)] for _ in range(2))
    conductors, differing = (conductor(kind, optimiser, own), Conductor(optimiser, [still()], expected)), 0
    for index, batch in enumerate(batches):
        for conductor_, buffers in zip(conductors, (own, expected)):
            buffers[1][:] = array("d", gradients[index:] + gradients[:index])
            update(conductor_, index, batch)
        differing += sum(not same(x, y) for a, b in zip(own, expected) for x, y in zip(a, b))
    return differing


def near_powers_of_two():
    """All numbers whose square or root is about a power of two, within the range of lanes."""
    middles = [middle for n in range(-65, 66) for middle in (2.0 ** (2 * n), 2.0 ** (n / 2))]
    return [middle + steps * math.ulp(middle) / 2 for middle in middles for steps in range(-16, 9)]


def hard_numbers(count):
    """Numbers whose squares and roots lie near the middle of two doubles or near powers of two, and special ones."""
    rng = random.Random(count)
    special = [0.0, -0.0, 5e-324, 2.0**-64, 2.0**64, 1.0, 2.0, 4.0, 1e300, 1e-300, math.inf, math.nan, 3 * 2.0**-70]
    special += [-1.0, 1e-170, 1e160, *near_powers_of_two()]
    random_ones = (math.ldexp(1 + rng.random(), rng.randrange(-40, 40)) for _ in itertools.count())
    return [*special, *itertools.islice(random_ones, count - len(special))]


SQUARE, ROOT = call("pow", Q, 2.0), call("pow", Q, 0.5)
POWERS = [Optimiser("square", SQUARE), Optimiser("root", ROOT), Optimiser("kept root", Q, {"root": ROOT})]
WITHOUT_LANES = [
    Optimiser("cube", call("pow", Q, 3.0)),
    Optimiser("two powers", SQUARE + ROOT),
    Optimiser("choice", where(Q > 1.0, ROOT, Q)),
]
FACTORS = [1.0, 1 - 2.0**-53, 0.5, 2.0**-99, 0.15, 0.56, 1 - 0.85**200, 2 - 2.0**-52, 7.0, 0.85 * 2.0**-250, -0.5]


@pytest.mark.parametrize("kind", LANES)
@pytest.mark.parametrize("optimiser", [*OPTIMISERS, *POWERS, *WITHOUT_LANES], ids=lambda optimiser: optimiser.name)
def test_an_update_is_that_in_python(optimiser, kind):
    """With rows that do not fill the last vector. Some numbers have powers that are infinite or NaN."""
    if (kind, optimiser.name) == ("numpy", "choice"):
        pytest.skip("an array is neither true nor false")
    rng = random.Random(2)
    usual = [rng.gauss(0, 1) * 10.0 ** rng.randrange(-40, 12) for _ in range(2000)]
    assert differing_updates(kind, optimiser, usual + hard_numbers(8001)) == 0


@pytest.mark.parametrize("kind", LANES)
@pytest.mark.parametrize("share", FACTORS)
def test_a_quotient_is_that_in_python(share, kind):
    """Kept, because a subtraction would round. Most dividends give quotients near the middle of two doubles."""
    rng = random.Random(4)
    middles = [Fraction(q) + Fraction(math.ulp(q)) / 2 for q in (rng.uniform(0.5, 2) for _ in range(2000))]
    dividends = [math.ldexp(float(q * Fraction(share)), rng.choice([0, 0, 0, -785, 60])) for q in middles]
    optimiser = Optimiser("share", Q, {"kept": Q / Leaf("share")}, {"share": Literal(share)})
    assert differing_updates(kind, optimiser, dividends + hard_numbers(8001), batches=(1,)) == 0


@NEEDS_FUSED
@pytest.mark.parametrize("optimiser", POWERS, ids=lambda optimiser: optimiser.name)
def test_lanes_leave_few_powers(optimiser, monkeypatch):
    rng = random.Random(3)
    buffers = [at_the_end_of_a_page(4000) for _ in ("p", "q", *optimiser.states)]
    buffers[1][:] = array("d", [rng.uniform(0.1, 10) for _ in range(4000)])
    calls, power_ = [], ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * 2)(lambda *_: calls.append(1) or 0.0)
    monkeypatch.setattr(lanes_in_machine_code, "powers_match_libm", lambda: False)  # every power is a call
    monkeypatch.setattr(memory, "function_of_libm", lambda _: ctypes.cast(power_, ctypes.c_void_p).value)
    update(ConductorInMachineCode(optimiser, False, [still()], buffers), 0, 1)
    assert 0 < len(calls) < 400


def update_expressions(names):
    """Expressions that an update may have, over the numbers of an update and these states."""

    def larger(inner):
        pairs, numbers = strategies.tuples(inner, inner), strategies.sampled_from([RATE, BATCH, SHARE])
        return (
            pairs.map(lambda pair: pair[0] + pair[1])
            | pairs.map(lambda pair: pair[0] - pair[1])
            | pairs.map(lambda pair: 0.9 * pair[0] * pair[1])
            | strategies.tuples(inner, numbers).map(lambda pair: pair[0] / pair[1])
            | pairs.map(lambda pair: pair[0] / (pair[1] + 1e-8))
            | strategies.tuples(inner, strategies.sampled_from([2.0, 0.5])).map(lambda pair: call("pow", *pair))
        )

    leaves = strategies.sampled_from([Q, RATE, BATCH, SHARE, *map(Leaf, names)])
    return strategies.recursive(leaves, larger, max_leaves=6)


SHARE = Leaf("share")


@pytest.mark.host
@NEEDS_FUSED
@given(data=strategies.data())
@settings(max_examples=examples(30), deadline=None)
def test_the_update_of_any_optimiser(data):
    """States may read each other, before and after they change."""
    names = data.draw(strategies.lists(strategies.sampled_from(["m", "v", "share2"]), unique=True))
    states = {name: data.draw(update_expressions(names)) for name in names}
    factors = {"share": 1 - call("pow", 0.9, UPDATE)}
    optimiser = Optimiser("any", data.draw(update_expressions(names)), states, factors)
    rng = random.Random(1)
    gradients = [rng.gauss(0, 1) * rng.choice([0.0, -0.0, 1e-3, 1e-3, 1e-25, 1e-170, 1e160]) for _ in range(501)]
    with contextlib.suppress(ArithmeticError):  # Python raises where machine code continues
        for kind in ("machine-4", *(["machine-8"] if HAS_512_BITS else [])):
            assert differing_updates(kind, optimiser, gradients) == 0


@NEEDS_FUSED
def test_an_update_with_more_addresses_than_registers_is_in_numpy():
    pytest.importorskip("numpy")
    optimiser = Optimiser("states", Q, {f"s{number}": Q for number in range(14)})
    assert type(conductor_of(optimiser, MACHINE, [], [array("d", [1.0])] * 16)) is ConductorInNumPy


@pytest.mark.host
@NEEDS_FUSED
def test_an_irregular_graph_has_its_steps_in_machine_code(monkeypatch):
    monkeypatch.setattr("zoomgrad.engines.rerolled.reroll.MANY_FOR_MACHINE", 1)
    workload = replace(workloads.load("random-dag"), optimiser=MOMENTUM)
    trainers = [usable(engine).prepare(workload) for engine in ("rerolled-machine", "tuple")]
    for trainer in trainers:
        trainer.train(3)
    assert all(map(same, *(trainer.parameters() for trainer in trainers)))


def test_a_trainer_serves_one_thread(monkeypatch):
    """Also while it asks for its rates."""
    trainer = engines.load("python-source").prepare(workloads.load("microgpt-L1-D8-H2-T4"))
    take, again = trainer._conductor.take, []

    def during(*course):
        with pytest.raises(RuntimeError, match="this Trainer is already running"):
            trainer.train(1)
        again.append(course)
        return take(*course)

    monkeypatch.setattr(trainer._conductor, "take", during)
    trainer.train(1)
    trainer.train(1)
    assert len(again) == len(trainer.losses) == 2
    asking = engines.load("python-source").prepare(replace(workloads.load(SMALL), rate=lambda _: asking.train(1)))
    with pytest.raises(RuntimeError, match="already running"):
        asking.train(1)


@pytest.mark.host
def test_numbers_of_numpy_are_numbers():
    """They are buffers as well, whose addresses must not reach machine code."""
    numpy = pytest.importorskip("numpy")
    workload = workloads.load(SMALL)
    trainer = usable("rerolled-machine").prepare(workload)
    first = []
    for kind in (int, numpy.int64):
        trainer.restart(batch=1, first=kind(1))
        trainer.train(3)
        first.append(list(trainer.losses))
    assert first[0] == first[1]
    with pytest.raises(TypeError):
        trainer.restart(batch=1, first=1.5)
