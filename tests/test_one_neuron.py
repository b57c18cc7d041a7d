"""The listings of docs/loops.md equal the code's output.

A listing is a fenced block after `<!-- listing: NAME -->`. `--update-golden` rewrites them, except Python, which
tests/test_docs.py runs; then reread the prose.
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
from zoomgrad.engines.graph.draw import show
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
BLOCK = re.compile(r"(?s)(<!-- listing: ([^>]*) -->\n```(?:asm)?\n)(.*?)(```\n)")
CUT = "…\n"

PAGE = DOCUMENT.read_text(encoding="utf-8")
ONE, THREE = (
    re.search(rf"(?s)<!-- listing: {name} -->\n```python\n(.*?)```", PAGE)[1] for name in ("program", "three neurons")
)
ONE_NAMES = ("inputs = [x0, x1, y]", "parameters = [w0, w1, b]", "outputs = [out]")
THREE_NAMES = ("inputs = x + y", "parameters = [p for n in range(len(b)) for p in [*w[n], b[n]]]", "outputs = []")

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
        self.loss = graph["loss"]
        self.tape = Graph(self.loss, **{name: graph[name] for name in ("inputs", "parameters", "outputs")}).tape()
        self.pulled = pull(self.tape)
        self.chained = chain(self.pulled)
        fused = fuse(self.chained)
        self.loops = lay_out(fused, group(fused))
        self.plain = plain(self.loops)
        self.step = rearrange(self.plain, SCALARS)
        self.machine = text(assemble(rearrange(self.plain, FOUR_WIDE), FOUR_WIDE).lines())


def text(lines):
    return "".join(f"{line}\n" for line in lines)


def listings(one, three):
    """Name -> text of each listing."""
    return {
        "printed": one.printed,
        "graph": text(show(one.loss)),
        "tape": text(one.tape.lines()),
        "sums": text(one.pulled.lines()),
        "loops": text(one.loops.lines()),
        "turn": section(one.plain, "turn"),
        "turn in place": section(one.step, "turn"),
        "machine code": between(one.machine, "; loop 0", "; loop 2"),
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


@pytest.mark.alone  # with --update-golden, another test writes the same file
def test_each_listing_matches_the_code(request):
    usable("native")  # the graph that is shown was recorded in C, which stores doubles
    made = listings(Stages(ONE, ONE_NAMES), Stages(THREE, THREE_NAMES))
    if request.config.getoption("--update-golden"):
        DOCUMENT.write_text(BLOCK.sub(lambda found: f"{found[1]}{made[found[2]]}{found[4]}", PAGE), encoding="utf-8")
    shown = {name: block for _, name, block, _ in BLOCK.findall(DOCUMENT.read_text(encoding="utf-8"))}
    assert shown == made, "if you meant to change it, run `pytest --update-golden`"
