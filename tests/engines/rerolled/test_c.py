"""The C of recovered loops has few statements, and compiles without warnings."""

from __future__ import annotations

import subprocess

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.rerolled.rolling import tape_of_workload
from zoomgrad.engines.compiled.emit import emit
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.kernel import toolchains
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host


def test_constants_do_not_add_statements():
    """gcc takes milliseconds for a statement, so many different constants are a table and a loop."""
    engine = usable("rerolled-tcc")

    def statements(number):
        p, x = engine.Value(0.3), engine.Value(0.7)
        loss = sum((p * x - number(i)) ** 2 for i in range(300))
        return text_of(lower(Graph(loss, [x], [p]).tape(), engine.options), engine.options).count(";")

    assert abs(statements(lambda i: 0.01 * i + 0.005) - statements(lambda i: 0.5)) < 20


@pytest.mark.parametrize(("engine", "compiler"), [("rerolled-tcc", "gcc"), ("rerolled-clang-sparse", "clang")])
def test_the_c_compiles_without_warnings(engine, compiler, tmp_path):
    usable(f"rerolled-{compiler}")
    engine = usable(engine)
    for name in ("xor", "mlp-70x40x3", "recurrent"):
        code = lower(tape_of_workload(workloads.load(name)), engine.options)
        for index, unit in enumerate(emit(code, engine.options).units):
            file = tmp_path / f"{name}-{index}.c"
            file.write_text(unit)
            flags = ("-O1", "-march=native", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-psabi")
            command = [
                *toolchains.find(compiler).command,
                *toolchains.STRICT,
                *flags,
                "-c",
                "-o",
                str(tmp_path / "out.o"),
                str(file),
            ]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            assert result.returncode == 0, result.stderr[:2000]
