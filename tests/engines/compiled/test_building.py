"""Builds: their private folders, and compilers that are started before there is anything to compile."""

from __future__ import annotations

import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.test_asking import is_gone, script
from zoomgrad.engines.compile import early_compilers
from zoomgrad.engines.kernel import building
from zoomgrad.engines.kernel.building import build, compiling
from zoomgrad.engines.kernel.toolchains import Toolchain
from zoomgrad.harness import workloads

OBJECT = 'while [ "$1" != -o ]; do shift; done; read include name; eval cat $name > "$2"'
"""Script of a compiler whose object is the file that its input includes."""


@pytest.fixture
def compiler(tmp_path):
    """`compiler(script)` returns a Toolchain that runs the script, and logs its processes and folders."""

    def make(text):
        program = script(tmp_path / "fakecc", f'echo $$ $(pwd) >> "{make.log}"\n{text}')
        return Toolchain("gcc", (str(program),), "1.0")

    make.log = tmp_path / "processes"
    make.runs = lambda: [line.split(" ", 1) for line in make.log.read_text().splitlines()]
    return make


@pytest.fixture
def linker(tmp_path, monkeypatch):
    """A fake `ld` that joins its objects."""
    program = script(tmp_path / "ld", 'shift 2; out="$2"; shift 2; cat "$@" > "$out"')
    monkeypatch.setattr(building, "linker", lambda _: (str(program), "-shared", "-Bsymbolic"))


@pytest.mark.parametrize("started", [0, 1, 2, 3])
def test_units_are_compiled_by_the_compilers_that_wait_and_by_more_if_there_are_too_few(compiler, linker, started):
    tool = compiler(OBJECT)
    with compiling(tool, ("-O1",)) as compilers:
        for _ in range(started):
            compilers.add()
        with build(tool, ["one ", "two"], ("-O1",), waiting=compilers) as built:
            assert built.path.read_text() == "one two"
    assert len(compiler.runs()) >= 2
    assert all(is_gone(int(process)) for process, _ in compiler.runs())


def test_a_build_is_private_and_deleted(compiler, monkeypatch):
    monkeypatch.setattr(building, "linker", lambda _: ())
    tool = compiler('while [ "$1" != -o ]; do shift; done; echo object > "$2"')
    with build(tool, ["int x;"], ()) as built:
        assert built.path.read_text() == "object\n"
        assert built.path.stat().st_size == 7
        assert stat.S_IMODE(built.path.parent.stat().st_mode) == 0o700
        assert built.path.parent.samefile(compiler.runs()[0][1])
        assert (built.path.parent / "unit_0.c").read_text() == "int x;"
    assert not built.path.parent.exists()


@pytest.mark.parametrize("name", ["rerolled-clang", "clang-O1"])
def test_a_program_of_a_compiler_that_waited_has_the_same_bits(name, monkeypatch):
    engine, used = usable(name), []
    monkeypatch.setattr(building, "build", lambda *a, waiting=None: used.append(waiting) or build(*a, waiting=waiting))
    monkeypatch.setattr("zoomgrad.engines.compile.early_compilers", early_compilers)
    losses = []
    for cores in (2, 1):
        monkeypatch.setattr("zoomgrad.engines.compile.CORES", cores)
        trainer = engine.prepare(workloads.load("xor"))
        losses.append(trainer.train(20))
    assert losses[0] == losses[1]
    assert used[0] is not None
    assert used[1] is None


def test_a_graph_that_is_refused_leaves_no_compiler(monkeypatch):
    engine, started = usable("clang-O1"), []

    def fail(*_):
        raise RuntimeError("refused")

    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **how: started.append(start(*a, **how)) or started[-1])
    monkeypatch.setattr("zoomgrad.engines.compile.early_compilers", early_compilers)
    monkeypatch.setattr("zoomgrad.engines.compile.lower", fail)
    with pytest.raises(RuntimeError, match="refused"):
        engine.prepare(workloads.load("xor"))
    assert [process.returncode for process in started] == [-signal.SIGKILL] * 2
    assert not any(Path(process.args[-1]).parent.exists() for process in started)
