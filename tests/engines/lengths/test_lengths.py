"""Optimisers, and training over several shapes: every engine has the bits of a plain Python program."""

import contextlib
import itertools
import math
import random
import sys
from array import array
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies

from tests.engines.compiled.compiling import usable
from tests.engines.fused import HAS_512_BITS, NEEDS_512_BITS, NEEDS_FUSED, WIDTHS, same
from tests.engines.guarded import at_the_end_of_a_page
from tests.engines.ladder import willing
from tests.examples import examples
from zoomgrad import engines
from zoomgrad.datasets import names
from zoomgrad.engines.graph.expr import Leaf, call
from zoomgrad.engines.graph.optimisers import ADAM, BATCH, OPTIMISERS, RATE, UPDATE, Optimiser, Q, power
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.lengths import in_c
from zoomgrad.engines.lengths.conductor import Conductor, ConductorInNumPy, Shared
from zoomgrad.engines.lengths.update_in_c import BLOCK
from zoomgrad.engines.lengths.update_in_machine_code import ConductorInMachineCode, conductor_for, write_update
from zoomgrad.engines.machine import target
from zoomgrad.harness import workloads
from zoomgrad.harness.procedure import every_shape
from zoomgrad.harness.worker.evidence import drill, drills
from zoomgrad.harness.workloads.changes import changed
from zoomgrad.harness.workloads.microgpt import samples

SMALL = "microgpt-L1-D4-H2-T4"
NATIVE = pytest.param(
    "native", marks=pytest.mark.skipif(sys.implementation.name != "cpython", reason="an extension type is for CPython")
)
ENGINES = (
    *(NATIVE, "python-source", "tcc-extension"),
    *(pytest.param(name, marks=pytest.mark.host) for name in ("rerolled-numpy", "rerolled-gcc", "rerolled-machine")),
)


PREPARED = {}
"""Trainers, because compiling takes most of the time."""


def trained(engine, workload, pieces=(3, 4), **how):
    key = (engine, workload.name, workload.optimiser.name, bool(workload.start))
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


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree(engine):
    """Over both shapes, with whole and partial batches, and rows that wrap around."""
    workload = workloads.load(SMALL)
    row = workload.row(1)
    for how in ({}, {"batch": 3}, {"rows": 3, "batch": 2}):
        assert bits(trained(engine, workload, **how), row) == bits(trained("tuple", workload, **how), row), how


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=lambda optimiser: optimiser.name)
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
    """The training stops before the update, in Python and in C."""
    workload = workloads.load(SMALL)
    start = trained("tuple", workload, pieces=()).parameters()
    start[:] = array("d", [1e200] * len(start))
    for engine in ("tuple", "python-source", "tcc"):
        with pytest.raises(ArithmeticError):
            trained(engine, replace(workload, start=start))


def test_invented_names():
    """They are the same with every engine, and fit the context."""
    workload = workloads.load(SMALL)
    found = samples(workload, trained("tcc", workload).predict, 5)
    assert found == samples(workload, trained("tuple", workload).predict, 5)
    assert all(len(name) <= 4 and not set(name) - set(names.ALPHABET) for name in found)


def test_names_of_a_length_that_no_row_has(tmp_path):
    """A model of names with four letters has one graph, which predicts shorter beginnings too."""
    file = tmp_path / "names.txt"
    file.write_text("\n".join(map("".join, itertools.product("ab", repeat=4))))
    workload = changed(workloads.load("microgpt-L1-D4-H2-T9"), {"names": str(file)})
    trainer = willing("tcc", workload).prepare(workload)
    with pytest.raises(ValueError, match=r"no training row has 5 numbers\n  Pass .*: 270\."):
        trainer.predict(array("d", bytes(40)))
    found = samples(workload, trainer.predict, 5)
    assert found == samples(workload, trained("tuple", workload, pieces=()).predict, 5)
    assert all(len(name) <= 5 for name in found)


def test_a_model_without_numbers_invents_nothing():
    workload = workloads.load(SMALL)
    count = len(trained("hoisted", workload, pieces=()).parameters())
    broken = replace(workload, start=array("d", [math.nan]) * count)
    with pytest.raises(ArithmeticError, match="probabilities"):
        samples(broken, willing("hoisted", broken).prepare(broken).predict, 1)


def near_powers_of_two():
    """All numbers whose square or root is about a power of two, within the range of the rounding test."""
    middles = [middle for n in range(-65, 66) for middle in (2.0 ** (2 * n), 2.0 ** (n / 2))]
    return [middle + steps * math.ulp(middle) / 2 for middle in middles for steps in range(-16, 9)]


def hard_numbers(count):
    """Numbers whose squares and roots lie near the middle of two doubles or near powers of two, and special ones."""
    rng = random.Random(count)
    special = [0.0, 5e-324, 2.0**-64, 2.0**64, 1.0, 2.0, 4.0, 1e300, 1e-300, math.inf, math.nan, 3 * 2.0**-70]
    special += near_powers_of_two()
    random_ones = (math.ldexp(1 + rng.random(), rng.randrange(-40, 40)) for _ in itertools.count())
    return array("d", [*special, *itertools.islice(random_ones, count - len(special))])


def powers_in_lanes(lib, numbers, is_root, is_known):
    """Their squares or roots, and how many of them the lanes left to libm."""
    found = array("d", bytes(8 * len(numbers)))
    pointers = [in_c.interface().from_buffer("double[]", buffer) for buffer in (numbers, found)]
    return found, lib.powers(*pointers, len(numbers), is_root, is_known)


@pytest.mark.host
@pytest.mark.parametrize(
    ("compiler", "width"), [("gcc", 4), pytest.param("clang", 8, marks=NEEDS_512_BITS), ("tcc", 1)]
)
@pytest.mark.parametrize("is_root", [0, 1])
def test_powers_in_lanes(compiler, width, is_root):
    """Squares and roots have libm's bits. With a known libm and fused multiply-add, libm computes few of them."""
    tool = toolchains.find(compiler)
    flags = (*toolchains.STRICT, *(() if width == 1 else ("-O2", *toolchains.NATIVE)))
    lib = in_c.load(tool, flags, ADAM, width)
    numbers = hard_numbers(8001)
    for known in {0, int(in_c.libm_is_known(lib))}:
        found, left = powers_in_lanes(lib, numbers, is_root, known)
        wanted = array("d", [power(number, 0.5 if is_root else 2.0) for number in numbers])
        assert found.tobytes() == wanted.tobytes()
        fused = width > 1 and "__FMA__" in toolchains.macros(tool, flags)
        assert (left < len(numbers) // 2) == bool(known and fused)


def in_c_library(source, tool=None, flags=(*toolchains.STRICT, "-O2", *toolchains.NATIVE)):
    """A conductor from this text."""
    with building.build(tool or toolchains.find("gcc"), [source], flags) as built:
        return in_c.interface().dlopen(str(built.path))


def nearest_middles(divisor):
    """Numbers whose quotients are nearest to the middle of two doubles, if the divisor has all its 53 binary digits.

    With digits D, the quotient A / D is c / (2**bits * D) from the middle N / 2**bits if A * 2**bits == N * D + c.
    """
    mantissa, exponent = math.frexp(divisor)
    digits = int(math.ldexp(mantissa, 53))
    for bits, c in itertools.product((53, 54), range(-15, 16, 2)):
        if digits % 2:
            middle = -c * pow(digits, -1, 1 << bits) % (1 << bits) | 1 << 53
            dividend, rest = divmod(middle * digits + c, 1 << bits)
            if not rest and dividend.bit_length() == 53:
                yield math.ldexp(dividend, exponent)


def hard_dividends(divisor, count):
    """Numbers whose quotients lie near the middle of two doubles, others, and special ones."""
    rng = random.Random(count)
    special = [0.0, 5e-324, 2.0**-512, 2.0**512, 2.0**-1022, 1e308, 1.0, divisor, math.inf, math.nan]
    numbers = [*special, *(-number for number in special)]
    if math.isfinite(divisor):
        numbers += nearest_middles(divisor)
    while len(numbers) < count:
        numbers.append(math.ldexp(1 + rng.random(), rng.randrange(-560, 560)) * rng.choice([-1, 1]))
    return array("d", numbers)


def wrong_quotients(lib, divisors, count=4001):
    """How many differ from Python's, and how many were divided one by one."""
    wrong = divided = 0
    for divisor in divisors:
        numbers, found = hard_dividends(divisor, count), array("d", bytes(8 * count))
        pointers = [in_c.interface().from_buffer("double[]", buffer) for buffer in (numbers, found)]
        divided += lib.quotients(*pointers, count, divisor)
        wanted = array("d", [number / divisor for number in numbers])
        wrong += sum(not same(x, y) for x, y in zip(found, wanted))
    return wrong, divided


DIVISORS = [
    *(1 - math.pow(0.85, n) for n in (1, 2, 3, 50, 200, 215, 220)),
    *(1 - math.pow(0.99, n) for n in (1, 2, 777)),
    *(1.0, 0.5, 3.0, 2.0**-60, 1 - 2.0**-53, 1 - 2.0**-49, 1 - 9 * 2.0**-53, 0.5 + 2.0**-53, 2 / 3, 1e-12),
    *(random.Random(n).randrange(1 << 52, 1 << 53) / 2.0**53 for n in range(20)),
]


@pytest.mark.host
@NEEDS_FUSED
@WIDTHS
def test_quotients_in_lanes(width):
    """They are those of the processor's division, though few are divided."""
    lib = in_c_library(in_c.source(ADAM, width))
    wrong, divided = wrong_quotients(lib, DIVISORS)
    assert wrong == 0
    assert divided < 4001 * len(DIVISORS) // 5
    assert wrong_quotients(lib, [-0.5, 1e-300, 1e300, math.inf, math.nan], 101)[0] == 0


def differing_updates(lib, updates, optimiser=ADAM):
    """After each update, the numbers that differ from those of the update in Python.

    Over blocks and vectors that do not divide the number of parameters, with zeros, tiny and huge gradients.
    """
    count, rng = BLOCK + 1031, random.Random(1)
    ours, theirs = (
        Shared(
            *(array("d", bytes(8 * count)) for _ in "pq"), tuple(array("d", bytes(8 * count)) for _ in optimiser.states)
        )
        for _ in range(2)
    )
    in_c_, in_python = in_c.ConductorInC(lib, optimiser, [], ours), Conductor(optimiser, [], theirs)
    differing = 0
    scales = [rng.choice([0.0, -0.0, 1e-3, 1e-3, 1e-3, 1e-25, 1e-170, 1e160]) for _ in range(count)]
    for update in range(updates):
        # Weights of a parameter that no row uses for a while decay to tiny numbers.
        gradients = [rng.gauss(0, 1) * scale if rng.random() < 0.9 else 0.0 for scale in scales]
        batch = 1 + update % 2
        for shared in (ours, theirs):
            shared.q[:] = array("d", gradients)
        lib.update_shared(in_c_._shared, update, 0.01, batch)
        in_python.update(update, 0.01, batch)
        pairs = zip((ours.p, ours.q, *ours.states), (theirs.p, theirs.q, *theirs.states))
        differing += sum(not same(x, y) for a, b in pairs for x, y in zip(a, b))
    return differing


@pytest.mark.host
@pytest.mark.parametrize(("tool", "width"), [("gcc", 4), pytest.param("clang", 8, marks=NEEDS_512_BITS)])
@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=lambda optimiser: optimiser.name)
def test_the_update_in_c_is_that_in_python(optimiser, tool, width):
    lib = in_c.load(toolchains.find(tool), (*toolchains.STRICT, "-O1", *toolchains.NATIVE), optimiser, width)
    assert differing_updates(lib, 20, optimiser) == 0


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
@settings(max_examples=examples(8), deadline=None)
def test_the_update_of_any_optimiser(data):
    """States may read each other, before and after they change, and their names may be those of the C's variables."""
    names = data.draw(strategies.lists(strategies.sampled_from(["m", "mean", "result0"]), unique=True))
    states = {name: data.draw(update_expressions(names)) for name in names}
    factors = {"share": 1 - call("pow", 0.9, UPDATE)}
    optimiser = Optimiser("any", data.draw(update_expressions(names)), states, factors)
    with contextlib.suppress(ArithmeticError):  # Python raises where C continues
        for width in (4, 8) if HAS_512_BITS else (4,):
            assert differing_updates(in_c_library(in_c.source(optimiser, width)), 4, optimiser) == 0


@pytest.mark.parametrize("width", [0, 4, 8])
@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=lambda optimiser: optimiser.name)
def test_the_update_of_arrays_is_that_of_single_numbers(optimiser, width, monkeypatch):
    """Some numbers have powers that are infinite or NaN. The buffers end at a page without access.

    width: of machine code; 0 stands for NumPy.
    """
    pytest.importorskip("numpy")
    if width:
        if not target.features() >= (target.AVX2 if width == 4 else target.AVX512):
            pytest.skip("the processor lacks these vectors")
        monkeypatch.setattr(target, "native", lambda: target.Target(width))
    rng = random.Random(2)
    numbers = [*(rng.gauss(0, 1) * 10.0 ** rng.randrange(-40, 12) for _ in range(5000)), 0.0, -0.0, 1e200, math.inf]
    buffers = [[at_the_end_of_a_page(len(numbers)) for _ in ("p", "q", *optimiser.states)] for _ in "ab"]
    shareds = [Shared(p, q, tuple(states)) for p, q, *states in buffers]
    for shared in shareds:
        shared.p[:] = array("d", numbers)
    conductors = (ConductorInMachineCode if width else ConductorInNumPy), Conductor
    for conduct, shared in zip(conductors, shareds):
        conductor = conduct(optimiser, [], shared)
        for update in range(3):
            shared.q[:] = array("d", numbers[update::] + numbers[:update])
            conductor.update(update, 0.01, 1 + update)
    pairs = zip(*((s.p, s.q, *s.states) for s in shareds))
    assert all(same(x, y) for ours, theirs in pairs for x, y in zip(ours, theirs))


@NEEDS_FUSED
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=lambda optimiser: optimiser.name)
def test_the_listing_of_an_update_is_what_a_disassembler_reads(optimiser, width):
    capstone = pytest.importorskip("capstone")
    code = write_update(optimiser, target.Target(width))
    lines = [line for line in code.lines if line.size]
    instructions = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm(
        code.finish()[0][: lines[-1].offset + lines[-1].size], 0
    )
    assert [(each.address, each.size) for each in instructions] == [(line.offset, line.size) for line in lines]


@NEEDS_FUSED
@pytest.mark.parametrize(
    "optimiser",
    [
        Optimiser("power", call("pow", Q, 3.0)),
        Optimiser("function", call("exp", Q)),
        Optimiser("states", Q, {f"s{number}": Q for number in range(14)}),  # more addresses than registers
    ],
    ids=lambda optimiser: optimiser.name,
)
def test_an_update_beyond_machine_code_is_numpys(optimiser):
    pytest.importorskip("numpy")
    shared = Shared(*([array("d", [1.0])] * 2), [array("d", [0.0]) for _ in optimiser.states])
    assert type(conductor_for(optimiser, [], shared)) is ConductorInNumPy
