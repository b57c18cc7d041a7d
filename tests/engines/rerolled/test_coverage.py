"""The share of a graph that is recovered as loops, for MLPs and other models; and the C compiles without warnings."""

from __future__ import annotations

import subprocess

import pytest

from tests.engines.rerolled.rolling import tape_of_workload
from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.emit import emit
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.rerolled.reroll import reroll
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host


def loops_of(name):
    return reroll(tape_of_workload(workloads.load(name)))


@pytest.mark.parametrize(
    ("name", "share", "most"),
    [
        ("recurrent", 0.99, 100),
        ("conv-1d", 0.99, 20),
        ("conv-2d", 0.99, 60),
        ("attention", 0.99, 70),
        ("polynomial", 0.99, 60),
        ("shuffled", 0.99, 60),
        ("digits", 0.99, 60),
        ("moons", 0.99, 30),
        ("tour", 0.95, 30),
        ("mlp-784x50x10", 0.999, 20),
    ],
)
def test_regular_graphs_become_loops(name, share, most):
    loops = loops_of(name)
    assert loops.coverage >= share
    assert len(loops.loops) <= most


def test_a_graph_without_structure_has_low_coverage():
    assert loops_of("random-dag").coverage < 0.5


@pytest.mark.parametrize(("engine", "compiler"), [("rerolled-tcc", "gcc"), ("rerolled-clang-sparse", "clang")])
def test_the_c_compiles_without_warnings(engine, compiler, tmp_path):
    try:
        tool = toolchains.find(compiler)
        engines.load(engine).check()
    except Unavailable as missing:
        pytest.skip(missing.reason)
    engine = engines.load(engine)
    for name in ("xor", "mlp-70x40x3", "recurrent"):
        code = lower(tape_of_workload(workloads.load(name)), engine.options)
        for index, unit in enumerate(emit(code, engine.options).units):
            file = tmp_path / f"{name}-{index}.c"
            file.write_text(unit)
            flags = ("-O1", "-march=native", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-psabi")
            command = [*tool.command, *toolchains.STRICT, *flags, "-c", "-o", str(tmp_path / "out.o"), str(file)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            assert result.returncode == 0, result.stderr[:2000]
