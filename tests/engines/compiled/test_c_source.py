"""The generated C: every C file is used, no compiler warns, and the code stays within its buffers."""

from __future__ import annotations

import subprocess

import pytest

from tests.engines.compiled.compiling import engine_of, tape_of, usable
from tests.engines.graphs import NAMED, Graph, classifier, side_by_side
from tests.engines.rerolled.rolling import form, step_of
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.c_text import FOLDER
from zoomgrad.engines.rerolled.emit.c import c_source as loops_in_c
from zoomgrad.engines.rerolled.rearrange import weight_reuse
from zoomgrad.engines.straight.c_source import Form, c_source
from zoomgrad.engines.straight.lower import lower as straight_lines
from zoomgrad.engines.straight.published import published_source

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


def test_every_c_file_is_part_of_some_unit():
    files = sorted(file for file in FOLDER.rglob("*.[ch]"))
    assert len(files) > 20
    code = "".join(file.read_text(encoding="utf-8") for file in [*files, *FOLDER.rglob("*.py")])
    for file in files:
        assert file.read_bytes().isascii()
        assert file.name in code, file
