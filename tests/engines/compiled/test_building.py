"""Builds: their private folders, and programs of several units."""

from __future__ import annotations

import stat

import pytest

from tests.engines.test_asking import is_gone, script
from zoomgrad.engines.kernel import building
from zoomgrad.engines.kernel.building import build
from zoomgrad.engines.kernel.toolchains import Toolchain


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


def test_each_unit_is_compiled_and_all_are_linked(compiler, linker):
    tool = compiler('while [ "$1" != -c ]; do shift; done; cat "$2" > "$4"')
    with build(tool, ["one ", "two"], ("-O1",)) as path:
        assert path.read_text() == "one two"
    assert len(compiler.runs()) == 2
    assert all(is_gone(int(process)) for process, _ in compiler.runs())


def test_a_build_is_private_and_deleted(compiler, monkeypatch):
    monkeypatch.setattr(building, "linker", lambda _: ())
    tool = compiler('while [ "$1" != -o ]; do shift; done; echo object > "$2"')
    with build(tool, ["int x;"], ()) as path:
        assert path.read_text() == "object\n"
        assert path.stat().st_size == 7
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert path.parent.samefile(compiler.runs()[0][1])
        assert (path.parent / "unit_0.c").read_text() == "int x;"
    assert not path.parent.exists()
