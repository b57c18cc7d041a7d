"""The listings of docs/one-neuron.md equal the code's output, and its prose quotes only numbers from them.

A listing is a fenced block after `<!-- listing: NAME -->`. `--update-golden` rewrites them; then reread the prose.
"""

import contextlib
import io
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from tests.engines.compiled.compiling import usable
from zoomgrad import engines
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.graph.show import show
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.rerolled.emit.c import c_source
from zoomgrad.engines.rerolled.fitted import SCALARS, VECTORS
from zoomgrad.engines.rerolled.rearrange import rearrange
from zoomgrad.engines.rerolled.recover.chains import chain
from zoomgrad.engines.rerolled.recover.fuse import fuse
from zoomgrad.engines.rerolled.recover.gradients import pull
from zoomgrad.engines.rerolled.recover.groups import group
from zoomgrad.engines.rerolled.recover.layout import lay_out
from zoomgrad.engines.rerolled.step.plain import plain

pytestmark = pytest.mark.host

DOCUMENT = Path(__file__).parent.parent / "docs" / "one-neuron.md"
BLOCK = re.compile(r"(?s)(<!-- listing: ([^>]*) -->\n```[a-z]*\n)(.*?)(```\n)")
CUT = "…\n"

ONE = """\
from zoomgrad import engines

engine = engines.load("rerolled-tcc")
Value = engine.Value

x0, x1 = Value(1.0, label="x0"), Value(2.0, label="x1")
y = Value(1.0, label="y")
w0, w1 = Value(0.5, label="w0"), Value(-0.25, label="w1")
b = Value(0.25, label="b")

out = (b + w0 * x0 + w1 * x1).relu()
error = y - out
loss = error * error

loss.backward()
print(loss.data, w0.grad, w1.grad, b.grad)
"""
ONE_NAMES = ("inputs = [x0, x1, y]", "parameters = [w0, w1, b]", "outputs = [out]")
THREE = """\
x = [Value(0.0) for i in range(5)]
y = [Value(0.0) for n in range(3)]
w = [[Value(0.0) for i in range(5)] for n in range(3)]
b = [Value(0.0) for n in range(3)]

losses = []
for n in range(3):
    out = sum([w[n][i] * x[i] for i in range(5)], b[n]).relu()
    error = y[n] - out
    losses.append(error * error)
loss = sum(losses)
"""
THREE_NAMES = ("inputs = x + y", "parameters = [p for n in range(len(b)) for p in [*w[n], b[n]]]", "outputs = []")
ROUNDING = ("(0.1 + 0.2) + 0.3", "0.1 + (0.2 + 0.3)")

TWO_WIDE = replace(VECTORS, width=2, units=1)
"""Vectors of two doubles, which every x86-64 processor has."""
FLAGS = (
    *(*toolchains.STRICT, "-O1", "-march=x86-64"),
    # One section per function, without the hardening that distributions add to every function.
    *("-ffunction-sections", "-fcf-protection=none", "-fno-stack-protector", "-fno-pie"),
)


class Stages:
    """Results of every stage for a program."""

    def __init__(self, program, names, form):
        names = "".join(f"{name}\n" for name in names)
        graph = {"Value": engines.load("rerolled-tcc").Value}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(program + names, "one-neuron.md", "exec"), graph)
        self.printed = printed.getvalue()
        self.loss, self.parameters = graph["loss"], graph["parameters"]
        self.named = {name: graph[name] for name in ("inputs", "parameters", "outputs")}
        self.tape = Graph(self.loss, **self.named).tape()
        self.pulled = pull(self.tape)
        self.chained = chain(self.pulled)
        self.fused = fuse(self.chained)
        self.groups = group(self.fused)
        self.loops = lay_out(self.fused, self.groups)
        self.plain = plain(self.loops)
        self.step = rearrange(self.plain, form)
        (self.c,) = c_source(self.step, form).units


@pytest.fixture(scope="module")
def one():
    return Stages(ONE, ONE_NAMES, SCALARS)


@pytest.fixture(scope="module")
def three():
    return Stages(THREE, THREE_NAMES, TWO_WIDE)


# --- listings --------------------------------------------------------------------------------------------------------


def text(lines):
    return "".join(f"{line}\n" for line in lines)


def listings(one, three):
    """Name -> text of each listing except the machine code."""
    functions = ("loops_0_to_3", "loops_6_to_7_in_place", "turn")
    return {
        "rounding": "".join(f">>> {sum_}\n{eval(sum_)!r}\n" for sum_ in ROUNDING),
        "program": ONE,
        "printed": one.printed,
        "graph": text(show(one.loss)),
        "call": f"program = engine.compile(loss, {', '.join(ONE_NAMES).replace(' = ', '=')})\n",
        "tape": text(one.tape.lines()),
        "sums": text(one.pulled.lines()),
        "loops": text(one.loops.lines()),
        "turn": section(one.plain, "turn"),
        "turn in place": section(one.step, "turn"),
        "C": CUT.join(["", *(definition(one.c, name) for name in functions)]) + CUT,
        "three neurons": THREE,
        "sums of three neurons": text(line for line in three.chained.lines() if line.count("+") == 5) + CUT,
        "loops of three neurons": text(three.loops.lines()),
        "C of three neurons": CUT + first_loop(three.c) + CUT,
    }


def section(step, name):
    """One section of a step."""
    return re.search(rf"(?m)^{name}:\n(  .*\n)+", text(step.lines()))[0]


def definition(c, function):
    """Text of a C function."""
    return re.search(rf"(?ms)^[^\n;]*\b{function}\([^;{{]*\)\n\{{\n.*?^\}}\n", c)[0]


def first_loop(c):
    """C of loop 0."""
    return c[c.index("    /* Loop 0") : c.index("    /* Loop 1")]


def machine_code(gcc, one, folder):
    """Text of the listing of machine code."""
    by = f"; gcc {gcc.version.split('.')[0]} -O1 -march=x86-64\n"
    return by + assembly(disassembled(gcc, one.c, "loops_0_to_3", folder))


def disassembled(gcc, c, function, folder):
    """Instructions of a function: address, name, operands."""
    source, built = folder / "unit.c", folder / "unit.o"
    source.write_text(c, encoding="utf-8")
    subprocess.run([*gcc.command, *FLAGS, "-c", str(source), "-o", str(built)], check=True)
    asked = ["objdump", "-d", "-M", "intel", "--no-show-raw-insn", f"--section=.text.{function}", str(built)]
    shown = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    return re.findall(r"(?m)^ *([0-9a-f]+):\t(\S+) *([^<#\n]*?) *(?:[<#].*)?$", shown)


def assembly(instructions):
    return text(f"{address:>4}:  {name:<9}{operands}".rstrip() for address, name, operands in instructions)


def blocks():
    """Name -> text of each listing in the document."""
    return {name: block for _, name, block, _ in BLOCK.findall(DOCUMENT.read_text(encoding="utf-8"))}


def compare(request, made):
    """Compare the document's listings of these names with `made`."""
    if request.config.getoption("--update-golden"):
        old = DOCUMENT.read_text(encoding="utf-8")
        new = BLOCK.sub(lambda found: found[1] + made.get(found[2], found[3]) + found[4], old)
        DOCUMENT.write_text(new, encoding="utf-8")
    shown = blocks()
    for name, listing in made.items():
        assert shown.get(name) == listing, (
            f"{DOCUMENT}: `{name}` differs\n  If you meant to change it, run `pytest --update-golden`."
        )


# --- tests -----------------------------------------------------------------------------------------------------------


@pytest.mark.alone  # with --update-golden, another test writes the same file
def test_each_listing_matches_the_code(request, one, three):
    usable("native")  # the graph that is shown was recorded in C, which stores doubles
    made = listings(one, three)
    compare(request, made)
    assert sorted(blocks()) == sorted([*made, "machine code"])


@pytest.mark.alone
def test_the_machine_code_matches_gccs(request, tmp_path, one):
    """The newest gcc must have the version that the document names; --update-golden names the version of this one."""
    if not toolchains.IS_X86 or sys.platform != "linux":
        pytest.skip("the document shows the machine code of x86-64, with Linux's calling convention")
    if not shutil.which("objdump"):
        pytest.skip("objdump is not on PATH; it comes with binutils")
    try:
        gcc = toolchains.find("gcc")
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    shown = re.match(r"; gcc (\d+) ", blocks()["machine code"])[1]
    if gcc.version.split(".")[0] != shown and not request.config.getoption("--update-golden"):
        pytest.skip(f"the document shows the machine code of gcc {shown}, and this is {gcc}")
    compare(request, {"machine code": machine_code(gcc, one, tmp_path)})
