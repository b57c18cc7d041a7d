"""The generated C: every C file is used, no compiler warns, and the code stays within its buffers."""

from __future__ import annotations

import subprocess

import pytest

from tests.engines.compiled.compiling import engine_of, tape_of, tape_of_workload, usable
from tests.engines.graphs import NAMED, Graph, classifier, side_by_side
from tests.engines.rerolled.rolling import form, step_of
from zoomgrad import engines
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.handwritten.mlp_source import mlp_source
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.c_text import FOLDER, read
from zoomgrad.engines.native import build
from zoomgrad.engines.rerolled.emit.c import c_source as loops_in_c
from zoomgrad.engines.rerolled.rearrange import divided, weight_reuse
from zoomgrad.engines.straight.c_source import Form, c_source
from zoomgrad.engines.straight.lower import lower as straight_lines
from zoomgrad.engines.straight.published import published_source
from zoomgrad.engines.threads import pool
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

PUBLISHED = "published"
FORMS = {
    "split": Form(piece=9, expression=4, units=2),
    "whole": Form(piece=0),
    PUBLISHED: PUBLISHED,
}


REROLLED = {
    "scalars, three rows": form(rows=3),
    "vectors of 4, two rows, three units": form(width=4, rows=2, registers=8, piece=9, units=3),
    "vectors of 4, zeros skipped, two rows": form(width=4, rows=2, accumulators=3, sparse=True),
}


def source_of(tape, form):
    """Return the C in that form."""
    if form in REROLLED.values():
        return loops_in_c(step_of(tape, form), form)
    return published_source(tape) if form == PUBLISHED else c_source(straight_lines(tape), form)


everything = side_by_side(NAMED)
TAPES = {
    "every program": lambda: tape_of(everything, ["input", "parameter"] * len(everything.numbers), [0, 1]),
    "a network": lambda: tape_of(*classifier(), outputs=[0, 1, 2]),
    "one parameter": lambda: tape_of(Graph("p", (1.0,), lambda Value, leaves: leaves), ["parameter"]),
    "one input": lambda: tape_of(Graph("x", (1.0,), lambda Value, leaves: leaves), ["input"]),
    "one constant": lambda: tape_of(Graph("c", (1.0,), lambda Value, leaves: leaves), ["constant"], [0]),
}


@pytest.mark.parametrize("tape", TAPES)
@pytest.mark.parametrize("compiler", ["gcc", "clang", "tcc"])
def test_no_compiler_warns(tmp_path, monkeypatch, compiler, tape):
    """Each form gives one or two files. gcc and Clang compile them all in one run, TCC one at a time."""
    monkeypatch.setattr(weight_reuse, "MANY", 1)
    tool = usable(engine_of(compiler, Form())).toolchain()
    warnings, forms = ["-Wall", "-Werror"], FORMS
    if compiler != "tcc":
        warnings, forms = [*warnings, "-Wextra", "-pedantic", "-Wno-psabi"], {**FORMS, **REROLLED}
    for name, chosen in forms.items():
        for number, unit in enumerate(source_of(TAPES[tape](), chosen).units):
            (tmp_path / f"{name}_unit{number}.c").write_text(unit, encoding="ascii")
    for file in sorted(tmp_path.glob("*.c")) if compiler == "tcc" else ["*"]:
        files = [str(file)] if compiler == "tcc" else [str(path) for path in sorted(tmp_path.glob("*.c"))]
        command = [*tool.command, *toolchains.STRICT, *warnings, "-fPIC", "-c", *files]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stdout + result.stderr) == (0, "")


BY_HAND = [("xor", False), ("xor", True), ("digits", False), ("digits", True)]
"""Workload, and whether inputs of 0 are skipped."""


FILES = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.[ch]"))
"""C files that are the same for every graph."""


@pytest.fixture
def every_text(monkeypatch):
    """C of every kind, for a network that is large enough for the rearranging passes."""
    monkeypatch.setattr(divided, "LEAST_WORK", 0)
    tape = tape_of_workload(workloads.load("digits"))
    rerolled = ("rerolled-tcc", *(f"rerolled-clang{more}" for more in ("", "-sparse", "-fast", "+threads")))
    names = ("tcc", "tcc-published", "tcc-extension", *rerolled)
    texts = [text_of(lower(tape, options), options) for options in (engines.load(name).options for name in names)]
    texts.append(build.source(toolchains.find("tcc")))
    texts.append(pool.source())
    return [*texts, *(mlp_source(workloads.load(name).network, sparse=sparse) for name, sparse in BY_HAND)]


def test_every_c_file_is_part_of_some_unit(every_text):
    assert len(FILES) > 20
    for file in FILES:
        assert (FOLDER / file).read_bytes().isascii()
        assert any(read(file) in text for text in every_text), file
