"""The generated C: every C file is used, no compiler warns, and the code stays within its buffers."""

from __future__ import annotations

import itertools
import os
import subprocess
from array import array

import pytest

from tests.engines.compiled.compiling import compiled, engine_of, tape_of, tape_of_workload, usable
from tests.engines.graphs import NAMED, Graph, classifier, side_by_side
from tests.engines.rerolled.rolling import form, step_of
from zoomgrad import engines
from zoomgrad.engines.columns import Column
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.handwritten.mlp_source import mlp_source
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.c_text import FOLDER, read
from zoomgrad.engines.native import build
from zoomgrad.engines.rerolled.emit import c
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


# --- sanitizers --------------------------------------------------------------------------------------------------

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

%(interface)s
enum { X = %(inputs)d, P = %(parameters)d, W = %(workspace)d, Y = %(outputs)d, ROWS = 5, STEPS = 12 };
enum { BATCH = %(batch)d };

static double *numbers(long count)
{
    double *made = malloc(count * sizeof(double)); /* to the byte: an access beyond is reported */
    for (long i = 0; i < count; i++)
        made[i] = 0.0;
    return made;
}

int main(void)
{
    static const double start[] = {%(start)s};
    double *x = numbers(X), *p = numbers(P), *w = numbers(W), *y = numbers(Y), *q = numbers(P);
    double *rates = numbers((STEPS + 2) / BATCH), *losses = numbers(STEPS), *doubles = numbers(ROWS);
    unsigned char *bytes = malloc(2 * ROWS), *labels = malloc(ROWS);
    for (int i = 0; i < P; i++)
        p[i] = start[i];
    for (int i = 0; i < (STEPS + 2) / BATCH; i++)
        rates[i] = 0.1;
    for (int row = 0; row < ROWS; row++) {
        doubles[row] = 0.25 * row;
        bytes[2 * row] = 51 * row;
        bytes[2 * row + 1] = 255 - row;
        labels[row] = row %% 3;
    }
    const struct column columns[] = {{doubles, 1, 1.0, 0}, {bytes, 2, 255.0, 1}, {labels, 3, 1.0, 2}};

    set_input(x, columns, 3, ROWS - 1);
    forward(x, p, w, y);
    backward(x, p, w, q);
    zero_grad(q);
    for (int row = 3; row < ROWS; row++) { /* a partial batch of two */
        set_input(x, columns, 3, row);
        forward(x, p, w, y);
        backward(x, p, w, q);
    }
    const struct buffers buffers = {x, p, w, y, q};
    const struct stretch stretch = {columns, 3, ROWS, 1, STEPS, BATCH, 2, rates, losses, 1};
    long long done = train(&buffers, &stretch);
    update(p, q, 0.1, 1.0);
    printf("%%lld\n", done);
    for (int i = 0; i < STEPS; i++)
        printf("%%a\n", losses[i]);
    for (int i = 0; i < P; i++)
        printf("%%a\n", p[i]);
    free(x), free(p), free(w), free(y), free(q);
    free(rates), free(losses), free(doubles), free(bytes), free(labels);
    return 0;
}
""".replace("%(interface)s", read("kernel/kernel.h").replace("%", "%%"))
"""Template of a C program that makes the same calls as `expected_of_main`, given a graph's sizes and start."""


def expected_of_main(batch):
    """Return what a Program computes for the same calls."""
    graph, kinds = classifier()
    program = compiled(usable(engine_of("tcc", Form())), graph, kinds, graph.numbers).program
    columns = [
        Column(array("d", [0.25 * row for row in range(5)]), 1),
        Column(bytes(x for row in range(5) for x in (51 * row, 255 - row)), 2, 255.0),
        Column(bytes(row % 3 for row in range(5)), 3, one_hot=True),
    ]
    program.train(columns, rate=0.0, batch=5, steps=2, first_row=3)
    losses = program.train(columns, rate=0.1, batch=batch, steps=12, first_row=1)
    program.update(0.1)
    return [12, *losses, *program.parameters]


@pytest.fixture
def sanitizing(tmp_path):
    """gcc's command with sanitizers, if a program that uses them compiles, links and runs."""
    tool = usable(engine_of("gcc", Form())).toolchain()
    command = [*tool.command, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    try:
        subprocess.run([*command, "empty.c", "-o", "empty"], cwd=tmp_path, capture_output=True, check=True)
        subprocess.run([str(tmp_path / "empty")], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("gcc has no libasan or libubsan here: apt install libasan6")
    return command


@pytest.mark.parametrize(("name", "batch"), [*itertools.product(FORMS, [5]), *itertools.product(REROLLED, [1, 5])])
def test_the_code_stays_within_its_buffers(tmp_path, monkeypatch, sanitizing, name, batch):
    """On every path through training."""
    monkeypatch.setattr(weight_reuse, "MANY", 1)
    monkeypatch.setattr(c, "ENOUGH", 1)
    graph, kinds = classifier()
    tape = tape_of(graph, kinds, [0, 1, 2])
    source = source_of(tape, {**FORMS, **REROLLED}[name])
    start = [x for x, kind in zip(graph.numbers, kinds) if kind == "parameter"]
    main = MAIN % {
        "inputs": kinds.count("input"),
        "parameters": len(start),
        "workspace": source.workspace,
        "outputs": 3,
        "start": ", ".join(map(repr, start)),
        "batch": batch,
    }
    files = {"main.c": main, **{f"unit_{index}.c": unit for index, unit in enumerate(source.units)}}
    for file, text in files.items():
        (tmp_path / file).write_text(text, encoding="ascii")
    command = [*sanitizing, *toolchains.STRICT, f"-I{FOLDER}", "-Wno-psabi", *files, "-lm", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "LC_ALL": "C"}  # the leak detector needs ptrace
    result = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=False, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    done, *numbers = result.stdout.split()
    assert [int(done), *map(float.fromhex, numbers)] == expected_of_main(batch)
