"""The listings of docs/loops.md equal the code's output.

A listing is a fenced block after `<!-- listing: NAME -->`. `--update-golden` rewrites them; then reread the prose.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from tests.engines.compiled.compiling import usable
from zoomgrad import engines
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.graph.show import show
from zoomgrad.engines.machine.program import assemble
from zoomgrad.engines.rerolled.fitted import SCALARS
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange import rearrange
from zoomgrad.engines.rerolled.recover.chains import chain
from zoomgrad.engines.rerolled.recover.fuse import fuse
from zoomgrad.engines.rerolled.recover.gradients import pull
from zoomgrad.engines.rerolled.recover.groups import group
from zoomgrad.engines.rerolled.recover.layout import lay_out
from zoomgrad.engines.rerolled.step.plain import plain

pytestmark = pytest.mark.host

DOCUMENT = Path(__file__).parent.parent / "docs" / "loops.md"
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

FOUR_WIDE = Form(width=4, registers=16, accumulators=8, rearrangements=("in place",))
"""Vectors of AVX2."""


class Stages:
    """Results of every stage for a program."""

    def __init__(self, program, names):
        names = "".join(f"{name}\n" for name in names)
        graph = {"Value": engines.load("rerolled-tcc").Value}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(program + names, "loops.md", "exec"), graph)
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
        self.step = rearrange(self.plain, SCALARS)
        self.machine = text(assemble(rearrange(self.plain, FOUR_WIDE), FOUR_WIDE).lines())


@pytest.fixture(scope="module")
def one():
    return Stages(ONE, ONE_NAMES)


@pytest.fixture(scope="module")
def three():
    return Stages(THREE, THREE_NAMES)


# --- listings --------------------------------------------------------------------------------------------------------


def text(lines):
    return "".join(f"{line}\n" for line in lines)


def listings(one, three):
    """Name -> text of each listing."""
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
        "machine code": between(one.machine, "; loop 0", "; loop 2"),
        "three neurons": THREE,
        "sums of three neurons": text(line for line in three.chained.lines() if line.count("+") == 5) + CUT,
        "loops of three neurons": text(three.loops.lines()),
        "machine code of three neurons": between(three.machine, "; loop 0", "; loop 1"),
    }


def section(step, name):
    """One section of a step."""
    return re.search(rf"(?m)^{name}:\n(  .*\n)+", text(step.lines()))[0]


def between(listing, start, stop):
    """Part of a listing of machine code, without the bytes: they depend on the distance to constants."""
    return re.sub(r"(?m)^( *\w+  )\w+ +", r"\1", listing[listing.index(start) : listing.index(stop)])


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
    assert sorted(blocks()) == sorted(made)
