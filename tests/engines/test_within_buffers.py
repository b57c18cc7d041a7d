"""Kernels whose buffers lie between NaN and a page without access: a read or a write beyond them ends the process.

C is compiled with gcc's checks of undefined behaviour, which end the process, too.
"""

from __future__ import annotations

from array import array
from functools import cache

import pytest

pytest.importorskip("numpy")

from tests.engines.compiled.compiling import compiled, engine_of, usable
from tests.engines.graphs import NAMED, Graph, bits, classifier, side_by_side
from tests.engines.guarded import at_the_end_of_a_page, is_intact
from tests.engines.rerolled.rolling import WIDTHS, form, machine, share_all_weights
from zoomgrad import engines
from zoomgrad.engines.columns import Column, columns
from zoomgrad.engines.kernel.program import Stretch
from zoomgrad.engines.rerolled.emit import c
from zoomgrad.engines.rerolled.form import Form as LoopForm
from zoomgrad.engines.straight.pieces import Form
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

CHECKED = ("-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
COMMON = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-pedantic", "-Wno-psabi", "-Werror")
WARNINGS = {"tcc": ("-Wall", "-Werror"), "gcc": COMMON, "clang": COMMON}
FORMS = {
    "lines in pieces": ("lines", Form(piece=9, expression=4, units=2)),
    "lines in one piece": ("lines", Form(piece=0)),
    "published": ("tape", None),
    "loops, scalars": ("loops", form(rows=3)),
    "loops, vectors": ("loops", form(width=4, rows=2, registers=8, piece=9, units=3)),
    "loops, zeros skipped": ("loops", form(width=4, rows=2, accumulators=3, sparse=True)),
}
C = {name: engine_of("gcc", chosen, *CHECKED, code=code) for name, (code, chosen) in FORMS.items()}
MACHINE = [
    pytest.param(machine(*param.values, sparse=sparse), id=f"{param.values[0]}-{kind}", marks=param.marks)
    for param in WIDTHS
    for kind, sparse in (("dense", False), ("sparse", True))
]
GENERATED = [*(pytest.param(engine, id=name) for name, engine in C.items()), *MACHINE]
EVERY = [*GENERATED, *(pytest.param(name, id=name) for name in ("handwritten", "handwritten-sparse"))]
SMALL = {"xor": 40, "mlp-5x4x3-b5": 12}
NETWORKS = {**SMALL, "digits": 5, "mlp-64x32x10-b4": 11, "mlp-70x60x1": 9, "mlp-3x7x65": 9, "mlp-9x231x2": 3}
"""Layers below, at and above a block of neurons."""
STEPS = {**NETWORKS, "tour": 20, "recurrent": 3, "conv-2d": 2, "attention": 2}
"""Workload -> steps."""


def workloads_of(param):
    """gcc takes seconds for straight lines, and for the C of larger graphs."""
    if param in MACHINE:
        return STEPS
    return NETWORKS if "handwritten" in param.id else (*SMALL, "tour", "digits") if "loops" in param.id else SMALL


CASES = [
    pytest.param(*param.values, name, id=f"{name}-{param.id}", marks=param.marks)
    for param in EVERY
    for name in workloads_of(param)
]


@cache
def expected(name):
    """Losses and parameters of the reference."""
    trainer = engines.load("tuple").prepare(workloads.load(name))
    trainer.train(STEPS[name])
    return bits(trainer.losses), bits(trainer.parameters())


@pytest.fixture(autouse=True)
def nothing_is_too_small(monkeypatch):
    share_all_weights(monkeypatch)
    monkeypatch.setattr(c, "ENOUGH", 1)
    monkeypatch.setattr(LoopForm, "is_beyond_cache", lambda form, parameters: True)


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_bits_within_guarded_buffers(engine, name):
    """All calls of a kernel."""
    workload, steps = workloads.load(name), STEPS[name]
    program = usable(engine).prepare(workload)._program
    kernel, start = program._kernel, program.parameters
    sizes = (len(program.inputs), len(start), len(kernel.workspace()), len(program.outputs), len(start))
    x, p, w, y, q = buffers = tuple(map(at_the_end_of_a_page, sizes))
    p[:] = array("d", start)
    rates = array("d", [workload.rate(update) for update in range(steps // workload.batch + 1)])
    losses = array("d", bytes(8 * steps))
    data = columns(workload.columns(), len(x))
    assert kernel.train(buffers, Stretch(data, 0, steps, workload.batch, 0, rates, losses)) == steps
    assert (bits(losses), bits(p)) == expected(name)
    q[:] = array("d", bytes(8 * len(q)))
    kernel.set_input(x, data, 0)
    kernel.forward(x, p, w, y)
    kernel.backward(x, p, w, q)
    before = [array("d", numbers) for numbers in (p, q)]
    kernel.update(p, q, 0.1, 3)
    assert bits(p) == bits([number - 0.1 * gradient / 3 for number, gradient in zip(*before)])
    assert not any(q)
    every = at_the_end_of_a_page(3 * len(y))
    without = Stretch(data, 0, 3, 1, 0, array("d"), array("d", bytes(24)), learns=False, y_step=len(y))
    assert kernel.train((x, p, w, every, q), without) == 3
    for row in range(3):
        kernel.set_input(x, data, row % data[0].rows)
        kernel.forward(x, p, w, y)
        assert bits(every[len(y) * row : len(y) * (row + 1)]) == bits(y)
    assert all(map(is_intact, (*buffers, every)))


@pytest.mark.parametrize("engine", GENERATED)
def test_rows_of_every_kind_of_column(engine):
    """Vectors compute quotients as sums of products where that keeps the bits, and look up the others."""
    program = usable(engine).prepare(workloads.load("tour"))._program
    width = len(program.inputs) - 7
    numbers, cells = at_the_end_of_a_page(3 * 2), at_the_end_of_a_page(-(-3 * width // 8)).cast("B")[-3 * width :]
    numbers[:], cells[:] = array("d", [at / 7 for at in range(3 * 2)]), bytes(at * 37 % 256 for at in range(3 * width))
    own = program.inputs, program.parameters, program.outputs, program.gradients
    x, p, y, q = (at_the_end_of_a_page(len(part)) for part in own)
    for divisor in (3.0, 255.0, 3.7, -0.1, 1e300, 5e-324):
        parts = Column(numbers, 2), Column(bytes((4, 5, 0)), 5, one_hot=True), Column(cells, width, divisor)
        rows = [[number for part in parts for number in part.values(row)] for row in range(3)]
        for steps in (1, 2, 3):
            stretch = Stretch(parts, 0, steps, 1, 0, array("d"), array("d", bytes(8 * steps)), learns=False)
            done = program._kernel.train((x, p, program._w, y, q), stretch)
            assert done == steps or divisor == 5e-324, "the loss of the first row is not finite"
            assert bits(x) == bits(rows[min(done, steps - 1)])
            program._kernel.set_input(x, parts, steps % 3)
            assert bits(x) == bits(rows[steps % 3])


# --- warnings ----------------------------------------------------------------------------------------------------

EVERYTHING = side_by_side(NAMED)
ODD = [
    (EVERYTHING, ["input", "parameter"] * len(EVERYTHING.numbers), [0, 1]),
    (*classifier(), [0, 1, 2]),
    *((Graph(kind, (1.0,), lambda Value, leaves: leaves), [kind], [0]) for kind in ("parameter", "input", "constant")),
]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("compiler", WARNINGS)
def test_no_compiler_warns(compiler, name):
    code, chosen = FORMS[name]
    if compiler == "tcc" and code == "loops" and chosen.width > 1:
        pytest.skip("TCC has no vectors")
    engine = usable(engine_of(compiler, chosen, *WARNINGS[compiler], code=code))
    for graph, kinds, outputs in ODD:
        compiled(engine, graph, kinds, graph.numbers, outputs)
