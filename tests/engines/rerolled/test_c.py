"""The C of recovered loops stays within its buffers, in every form and on every path through training."""

from __future__ import annotations

import os
import subprocess
from array import array

import pytest

from tests.engines.compiled.compiling import compiled, usable
from tests.engines.compiled.test_c_source import MAIN, sanitizing  # noqa: F401  (a fixture)
from tests.engines.graphs import classifier
from tests.engines.rerolled.rolling import form, step_of, tape_of
from zoomgrad.engines.columns import Column
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.c_text import FOLDER
from zoomgrad.engines.rerolled.emit import c
from zoomgrad.engines.rerolled.emit.c import c_source
from zoomgrad.engines.rerolled.rearrange import weight_reuse as pairs

pytestmark = pytest.mark.host

FORMS = {
    "scalars, three rows": form(rows=3),
    "vectors of 4, two rows, three units": form(width=4, rows=2, registers=8, piece=9, units=3),
    "vectors of 4, zeros skipped, two rows": form(width=4, rows=2, accumulators=3, sparse=True),
}


def expected_of_main(batch):
    """Return what a Program of straight-line C computes for the calls of `MAIN`."""
    graph, kinds = classifier()
    program = compiled(usable("tcc"), graph, kinds, graph.numbers).program
    columns = [
        Column(array("d", [0.25 * row for row in range(5)]), 1),
        Column(bytes(x for row in range(5) for x in (51 * row, 255 - row)), 2, 255.0),
        Column(bytes(row % 3 for row in range(5)), 3, one_hot=True),
    ]
    program.train(columns, rate=0.0, batch=5, steps=2, first_row=3)
    losses = program.train(columns, rate=0.1, batch=batch, steps=12, first_row=1)
    program.update(0.1)
    return [12, *losses, *program.parameters]


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("name", FORMS)
def test_the_c_stays_within_its_buffers(tmp_path, monkeypatch, sanitizing, name, batch):  # noqa: F811
    monkeypatch.setattr(pairs, "MANY", 1)
    monkeypatch.setattr(c, "ENOUGH", 1)
    graph, kinds = classifier()
    source = c_source(step_of(tape_of(graph, kinds, [0, 1, 2]), FORMS[name]), FORMS[name])
    start = [x for x, kind in zip(graph.numbers, kinds) if kind == "parameter"]
    main = MAIN % {
        "inputs": kinds.count("input"),
        "parameters": len(start),
        "workspace": source.workspace,
        "outputs": 3,
        "start": ", ".join(map(repr, start)),
    }
    main = main.replace("BATCH = 5", f"BATCH = {batch}")
    files = {"main.c": main, **{f"unit_{index}.c": unit for index, unit in enumerate(source.units)}}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    command = [*sanitizing, *toolchains.STRICT, f"-I{FOLDER}", "-Wno-psabi", *files, "-lm", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "LC_ALL": "C"}  # the leak detector needs ptrace
    result = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=False, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    done, *numbers = result.stdout.split()
    assert [int(done), *map(float.fromhex, numbers)] == expected_of_main(batch)


def test_constants_do_not_add_statements():
    """gcc takes milliseconds for a statement, so many different constants are a table and a loop."""
    engine = usable("rerolled-tcc")

    def statements(number):
        p, x = engine.Value(0.3), engine.Value(0.7)
        loss = sum((p * x - number(i)) ** 2 for i in range(300))
        return text_of(lower(Graph(loss, [x], [p]).tape(), engine.options), engine.options).count(";")

    assert abs(statements(lambda i: 0.01 * i + 0.005) - statements(lambda i: 0.5)) < 20
