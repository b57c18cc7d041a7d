"""Machine code of whole steps: its listing its bits for both widths, and its symbols."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import compiled, difference, reference
from tests.engines.graphs import Graph
from tests.engines.rerolled.rolling import WIDTHS, form_of, machine
from zoomgrad import engines
from zoomgrad.engines import nn
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.kernel.library import interface
from zoomgrad.engines.machine import memory, target
from zoomgrad.engines.machine.buffers.rows import Words
from zoomgrad.engines.machine.encode import Assembler
from zoomgrad.engines.machine.memory import Memory
from zoomgrad.engines.machine.nest import Writer
from zoomgrad.engines.machine.program import assemble
from zoomgrad.engines.machine.target import WORDS, Word, vector_registers
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled import fitted
from zoomgrad.engines.rerolled.rearrange import rearrange
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

KINDS = {kind: Options("loops", target="machine", **{kind: True}) for kind in ("sparse", "fast")}
KINDS["dense"] = Options("loops", target="machine")


def step_of(name, options, width):
    workload = workloads.load(name)
    graph = trace(workload, workload.row(0))
    return rearrange(plain(reroll(graph.tape())), form_of(options, width, vector_registers(width))), graph.numbers()[1]


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
    program = compiled(machine(width), graph, ["parameter"] * 425, graph.numbers)
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
@pytest.mark.parametrize("name", ["tour", "digits", "mlp-64x32x10-b4", "mlp-9x231x2"])
def test_a_listing_is_what_a_disassembler_reads(name, width, kind):
    capstone = pytest.importorskip("capstone")
    form = form_of(KINDS[kind], width, vector_registers(width))
    code = assemble(step_of(name, KINDS[kind], width)[0], replace(form, embeds=width == 8 and kind == "dense"))
    listing = "".join(map(str, code.assembler.lines))
    assert ("in strips" in listing) == (name != "tour" and width == 4 and kind != "sparse")
    lines = [line for line in code.assembler.lines if line.size]
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    read = list(engine.disasm(bytes(code.assembler.code[: lines[-1].offset + lines[-1].size]), 0))
    assert [(each.address, each.size) for each in read] == [(line.offset, line.size) for line in lines]
    sums = [set(re.findall("[xyz](?=mm)", text)) for text in map(str, lines) if re.match("v(add|mul)p", text)]
    assert all(len(sizes) == 1 for sizes in sums)
    wide = [(text, 64 if "zmm" in text else 32) for text in map(str, lines) if re.search("[yz]mm", text)]
    assert all(int(at) + size <= 8 * WORDS for text, size in wide for at in re.findall(r"r15 \+ (\d+)", text))


@pytest.mark.parametrize("vendor", ["AuthenticAMD", "GenuineIntel"])
def test_products_read_a_number_of_a_row_from_memory_on_amd_only(vendor, monkeypatch):
    monkeypatch.setattr(fitted, "features", lambda: {vendor})
    assert [form_of(KINDS["dense"], width, 16).embeds for width in (4, 8)] == [False, vendor == "AuthenticAMD"]


@pytest.mark.parametrize("width", WIDTHS)
def test_blocks_of_a_deferred_update_fit_the_registers(width, monkeypatch):
    monkeypatch.setattr(Assembler, "back_to", None)  # which would begin smaller blocks
    trainers = [row.prepare(workloads.load("mlp-9x232x2")) for row in (engines.load("tuple"), machine(width))]
    assert len({bytes(trainer.train(3) or trainer.losses) for trainer in trainers}) == 1


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


@pytest.mark.parametrize("width", WIDTHS)
def test_blocks_shrink_until_they_fit_the_registers(width):
    graph, kinds = products(2 * width, 8 * width, 3)
    program = compiled(machine(width), graph, kinds, graph.numbers)
    assert difference(program, graph.numbers, reference(graph, graph.numbers)) == ""


@pytest.mark.parametrize(
    "name", ["microgpt-L1-D10-H2-T4", "microgpt-L1-D16-H1-T4", "mlp-3x37x1", "conv-1d", "random-dag"]
)
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_terms_side_by_side(width, fast, name):
    """Whole and partial windows, terms with two counts with or without a loop over the inner one, and single sums."""
    workload, gradients = workloads.load(name), []
    for engine in (machine(width, fast=fast), engines.load("python-source")):
        model, inputs = workload.model(nn.bind(engine.Value)), [engine.Value(x) for x in workload.row(0)]
        loss = workload.loss(model, inputs, workload.outputs(model, inputs))
        program = engine.compile(loss, inputs=inputs, parameters=model.parameters())
        program.forward()
        program.backward()
        gradients.append(list(program.gradients))
    assert gradients[0] == (pytest.approx(gradients[1], rel=1e-9, abs=1e-12) if fast else gradients[1])


def test_a_processor_without_the_instructions_runs_no_code(monkeypatch, code):
    """Also if nobody asked `check`: the process would end at the first call."""
    monkeypatch.setattr(target, "features", lambda: frozenset(("fma",)))
    with pytest.raises(Unavailable, match="avx2"):
        Memory(code)


def test_code_takes_no_buffer_that_it_could_not_write(code):
    code.plain("ret")
    memory = Memory(code)
    memory.bound(bytearray(8), bytearray(8))()
    with pytest.raises((TypeError, BufferError)):
        memory.bound(bytes(8), bytearray(8))


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
    assemble(step, form_of(KINDS[kind], 4, 16))
    assert kept
    assert not any(kept)


@pytest.fixture
def code():
    return Assembler()


@pytest.fixture
def map_file(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "PERF_FOLDER", tmp_path)
    monkeypatch.setenv(memory.PERF_CONTROL, "on")
    return tmp_path / f"perf-{os.getpid()}.map"


def test_each_routine_has_a_symbol(map_file):
    engine = engines.load("rerolled-machine")
    engine.check()
    x, w = engine.Value(1.0), engine.Value(0.5)
    engine.compile((w * x - 1.0) ** 2, inputs=[x], parameters=[w])
    lines = [line.split(" ", 2) for line in map_file.read_text(encoding="ascii").splitlines()]
    assert {"machine code: values", "machine code: turn", "machine code: train()"} <= {name for *_, name in lines}
    places = [(int(start, 16), int(size, 16)) for start, size, _ in lines]
    assert all(start + size == after for (start, size), (after, _) in zip(places, places[1:]))


def test_no_link_is_followed(map_file, tmp_path):
    other = tmp_path / "other"
    other.write_text("", encoding="ascii")
    map_file.symlink_to(other)
    memory.write_symbols(4096, {"values": 0}, 8)
    map_file.unlink()
    os.link(other, map_file)
    memory.write_symbols(4096, {"values": 0}, 8)
    assert other.read_text(encoding="ascii") == ""
