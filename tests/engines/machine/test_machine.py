"""Machine code of whole steps: its listing, its bits for both widths, and no access outside its buffers."""

from __future__ import annotations

from array import array

import pytest

from tests.engines.compiled.compiling import compiled, difference, engine_of, reference
from tests.engines.graphs import Graph, bits
from tests.engines.guarded import at_the_end_of_a_page
from tests.engines.rerolled.test_series import everywhere  # noqa: F401  (a fixture)
from tests.engines.rerolled.test_tempting import hunt
from tests.engines.rerolled.test_waves import texts
from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.columns import Column, columns
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.kernel.library import interface
from zoomgrad.engines.kernel.program import Stretch
from zoomgrad.engines.machine import target
from zoomgrad.engines.machine.buffers.rows import Words
from zoomgrad.engines.machine.encode import Assembler
from zoomgrad.engines.machine.kernel import MachineKernel
from zoomgrad.engines.machine.memory import Memory, bound
from zoomgrad.engines.machine.nest import Writer
from zoomgrad.engines.machine.program import assemble
from zoomgrad.engines.machine.target import AVX2, AVX512, Target, Word, features, form_of
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.rearrange import rearrange, whole_batches
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

WIDTHS = [
    pytest.param(width, marks=pytest.mark.skipif(not features() >= needed, reason=f"no vectors of {width}"))
    for width, needed in ((4, AVX2), (8, AVX512))
]
KINDS = {"dense": Options("loops", target="machine"), "sparse": Options("loops", target="machine", sparse=True)}
LOOPS = {"code": "loops", "target": "machine"}
STEPS = {"xor": 40, "tour": 20, "digits": 5, "recurrent": 3, "conv-2d": 2, "attention": 2, "mlp-64x32x10-b4": 11}


def step_of(name, options, width):
    workload = workloads.load(name)
    graph = trace(workload, workload.row(0))
    return rearrange(plain(reroll(graph.tape())), form_of(options, Target(width))), graph.numbers()[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", STEPS)
def test_bits_within_guarded_buffers(name, width, kind, monkeypatch):
    """Every buffer ends at a page without access, so a read or a write beyond it ends the process."""
    monkeypatch.setattr(whole_batches, "MANY", 1)
    options, workload, steps = KINDS[kind], workloads.load(name), STEPS[name]
    step, start = step_of(name, options, width)
    kernel = MachineKernel(assemble(step, form_of(options, Target(width))))
    sizes = (step.loops.inputs, len(start), len(kernel.workspace()), len(step.loops.outputs), len(start))
    x, p, w, y, q = buffers = tuple(map(at_the_end_of_a_page, sizes))
    p[:] = array("d", start)
    updates = steps // workload.batch
    rates = array("d", [workload.rate(update) for update in range(updates + 1)])
    losses = array("d", bytes(8 * steps))
    data = columns(workload.columns(), len(x))
    assert kernel.train(buffers, Stretch(data, 0, steps, workload.batch, 0, rates, losses)) == steps
    reference = engines.load("tuple").prepare(workload)
    reference.train(steps)
    assert bits(losses) == bits(reference.losses)
    assert bits(p) == bits(reference.parameters())
    kernel.set_input(x, data, 0)
    kernel.forward(x, p, w, y)
    kernel.backward(x, p, w, q)
    expected = [array("d", numbers) for numbers in (p, q)]
    kernel.update(p, q, 0.1, 3)
    assert bits(p) == bits([number - 0.1 * gradient / 3 for number, gradient in zip(*expected)])
    kernel.zero_grad(q)
    assert not any(q)
    every = at_the_end_of_a_page(3 * len(y))
    without = Stretch(data, 0, 3, 1, 0, array("d"), array("d", bytes(24)), learns=False, y_step=len(y))
    assert kernel.train((x, p, w, every, q), without) == 3
    for row in range(3):
        kernel.set_input(x, data, row % data[0].rows)
        kernel.forward(x, p, w, y)
        assert bits(every[len(y) * row : len(y) * (row + 1)]) == bits(y)


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_of_every_kind_of_column(width):
    """One row into inputs that end at a page without access. A divisor of 3 has sums of products, 255.5 has none."""
    step, _ = step_of("xor", KINDS["dense"], width)
    kernel = MachineKernel(assemble(step, form_of(KINDS["dense"], Target(width))))
    numbers, cells = array("d", [at / 7 for at in range(3 * 11)]), bytes(range(3 * 13))
    parts = (
        Column(numbers, 11),
        Column(cells, 13, 3.0),
        Column(cells, 13, 255.5),
        *(Column(bytes((4, 5, 0)), count, one_hot=True) for count in (5, 6)),
    )
    x = at_the_end_of_a_page(11 + 13 + 13 + 5 + 6)
    for row in range(3):
        kernel.set_input(x, parts, row)
        assert bits(x) == bits([number for part in parts for number in part.values(row)])


@pytest.mark.parametrize("width", WIDTHS)
def test_parameters_and_outputs_in_any_order(width):
    """Copies of single numbers, of matrices that are turned or not, and of places that are listed."""

    def build(Value, leaves):
        rows = [leaves[at : at + 21] for at in range(0, 21 * 19, 21)]
        turned = [sum(row[at] * rows[0][at] for row in rows) for at in range(21)]
        straight = [sum(a * b for a, b in zip(row, leaves[400:])) for row in rows]
        odd = [leaves[at] * leaves[at * 7 % 400] for at in (3, 50, 11, 200)]
        return [sum([each * each for each in (*turned, *straight, *odd)]), *turned[::-1], *odd, *straight]

    graph = Graph("orders", tuple(0.01 * (at % 23 - 11) for at in range(425)), build)
    engine = engine_of("", form_of(KINDS["dense"], Target(width)), **LOOPS)
    program = compiled(engine, graph, ["parameter"] * 425, graph.numbers)
    assert difference(program, graph.numbers, reference(graph, graph.numbers)) == ""


def test_words_are_those_of_the_header():
    types = [interface().typeof(f"struct {name}").fields for name in ("stretch", "buffers", "column")]
    stretch, buffers, column = ([name for name, _ in fields] for fields in types)
    names = [word.name.lower() for word in Word]
    assert names[: Word.X] == ["row" if name == "first_row" else name for name in stretch]
    assert names[Word.X : Word.STEP] == ["workspace" if name == "w" else name for name in buffers]
    assert [word.name.lower() for word in Words][: len(column)] == column


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("name", ["tour", "digits", "mlp-64x32x10-b4"])
def test_a_listing_is_what_a_disassembler_reads(name, width, kind):
    capstone = pytest.importorskip("capstone")
    step, _ = step_of(name, KINDS[kind], width)
    code = assemble(step, form_of(KINDS[kind], Target(width)))
    lines = [line for line in code.assembler.lines if line.size]
    end = lines[-1].offset + lines[-1].size
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    found = list(engine.disasm(code.bytes[:end], 0))
    assert [(each.address, each.size) for each in found] == [(line.offset, line.size) for line in lines]


def products(outer, inner, terms):
    """A graph whose sums have three factors. Registers can't hold a usual block of sums and all its factors."""
    of_outer, of_inner = outer * terms, inner * terms

    def build(Value, leaves):
        a, b, c = leaves[:of_outer], leaves[of_outer : of_outer + of_inner], leaves[of_outer + of_inner :]
        rows, columns = (a[at : at + terms] for at in range(0, of_outer, terms)), range(inner)
        sums = [sum(f * (u * v) for f, u, v in zip(row, b[at::inner], c[at::inner])) for row in rows for at in columns]
        return [sum(each * each for each in sums)]

    numbers = tuple(0.1 + at % 7 / 13 for at in range(of_outer + 2 * of_inner))
    return Graph("products", numbers, build), ["input"] * of_outer + ["parameter"] * (2 * of_inner)


@pytest.mark.parametrize(("width", "outer", "inner"), [(4, 4, 16), (8, 16, 64)])
def test_blocks_shrink_until_they_fit_the_registers(width, outer, inner):
    if not features() >= (AVX512 if width == 8 else AVX2):
        pytest.skip(f"no vectors of {width}")
    graph, kinds = products(outer, inner, 3)
    form = form_of(KINDS["dense"], Target(width))
    engine = engine_of("", form, **LOOPS)
    program = compiled(engine, graph, kinds, graph.numbers)
    assert difference(program, graph.numbers, reference(graph, graph.numbers)) == ""


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("width", WIDTHS)
def test_rounds_keep_the_reference_bits(width):
    hunt(engine_of("", form_of(KINDS["dense"], Target(width)), **LOOPS), texts, 20)


def test_a_processor_without_the_instructions_runs_no_code(monkeypatch):
    """Also if nobody asked `check`: the process would end at the first call."""
    monkeypatch.setattr(target, "features", lambda: frozenset(("fma",)))
    with pytest.raises(Unavailable, match="avx2"):
        Memory(b"\xc3")


def test_code_takes_no_buffer_that_it_could_not_write():
    code = Assembler()
    code.plain("ret")
    memory = Memory(code.finish()[0])
    bound(memory.start, bytearray(8), bytearray(8))()
    with pytest.raises((TypeError, BufferError)):
        bound(memory.start, bytes(8), bytearray(8))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["digits", "attention", "microgpt"])
def test_no_loop_keeps_a_register(name, kind, monkeypatch):
    """With fewer registers, the tiles of all later loops are smaller."""
    write, kept = Writer._loop, []

    def loop(writer, *arguments):
        write(writer, *arguments)
        kept.append(dict(writer.registers.users))

    monkeypatch.setattr(Writer, "_loop", loop)
    step, _ = step_of(name, KINDS[kind], 4)
    assemble(step, form_of(KINDS[kind], Target(4)))
    assert kept
    assert not any(kept)
