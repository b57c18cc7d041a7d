"""Stores of compiled objects, of a race and of a user: only the object that was kept is ever loaded.

The tests replace it with truncated and changed files.
"""

from __future__ import annotations

import os
import stat

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.api import Store
from zoomgrad.engines.compile import compile as compile_graph
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.trace import Graph
from zoomgrad.engines.files import CACHE
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.kernel import building, object_cache, toolchains
from zoomgrad.harness import workloads

if os.name != "posix":
    pytest.skip("owners and modes exist only on POSIX", allow_module_level=True)


@pytest.fixture
def builds(monkeypatch):
    """One entry for each build."""
    made, build = [], building.build
    monkeypatch.setattr(building, "build", lambda *args, **limits: made.append(args) or build(*args, **limits))
    return made


# --- a race ------------------------------------------------------------------------------------------------------


class Kept:
    """An engine with one program whose object is kept."""

    def __init__(self, name, folder):
        self.engine, self.folder = usable(name), folder

    def block(self):
        """Build or load the program, run it, and return the result and whether it was compiled."""
        x, clock = Value(5.0), Clock()
        graph = Graph(x * 2.0, [x], [])
        program = compile_graph(lambda: graph, self.engine.options, clock, store=Store(self.folder, 0.0))
        return program.forward(), bool(clock.phases)

    def object(self):
        (path,) = self.folder.glob("*.object")
        return path


@pytest.fixture(params=["tcc", "tcc-extension"])
def program(request, tmp_path):
    program = Kept(request.param, tmp_path / "objects" / "of a run")
    assert program.block() == (10.0, True)
    assert program.block() == (10.0, False)
    return program


def test_a_truncated_object_is_compiled_again(program):
    """Loading it would end the process by SIGBUS."""
    path = program.object()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.warns(UserWarning, match="compiling it again"):
        assert program.block() == (10.0, True)
    assert program.block() == (10.0, False), "the new object was not kept"


def test_the_loaded_object_is_the_hashed_one(program, monkeypatch):
    """It is a private copy: changing the file after it was read has no effect."""
    copy = object_cache.write

    def change_then_copy(path, content):
        program.object().write_bytes(b"changed meanwhile")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        copy(path, content)

    monkeypatch.setattr(object_cache, "write", change_then_copy)
    assert program.block() == (10.0, False)


def test_a_recipe_covers_everything_that_determines_an_object(tmp_path, monkeypatch, builds):
    """Each of these programs is built, although a store has the others."""
    x = Value(5.0)

    def compile_one(name, k=2.0):
        graph = Graph(x * k, [x], [])
        compile_graph(lambda: graph, usable(name).options, Clock(), store=Store(tmp_path / "objects", 0.0))
        return len(builds)

    assert [compile_one("gcc-O0"), compile_one("gcc-O0")] == [1, 1]
    assert [compile_one("gcc-O0", 3.0), compile_one("gcc-O0+native"), compile_one("tcc")] == [2, 3, 4]
    tool = toolchains.find("gcc")
    monkeypatch.setattr(toolchains, "find", lambda family: tool._replace(version="99.0"))
    assert compile_one("gcc-O0") == 5
    monkeypatch.setattr(toolchains, "macros", lambda tool, flags: frozenset({"__AVX512F__"}))
    assert compile_one("gcc-O0") == 6


# --- a user ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of objects in a separate cache, which keeps every build."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(object_cache, "USERS_FROM_SECONDS", 0.0)
    return tmp_path / "cache" / "objects"


def test_a_users_program_is_compiled_once(folder, builds):
    def program(scale):
        x = Value(5.0)
        return usable("tcc").compile(x * scale, inputs=[x], parameters=[])

    first, again = program(2.0), program(2.0)
    assert (first.forward(), again.forward(), len(builds)) == (10.0, 10.0, 1)
    assert program(3.0).forward() == 15.0
    assert len(builds) == 2, "another program got the object"
    assert again.sizes == first.sizes
    assert again.phases["load"] > 0.0
    for file in folder.glob("*.object"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.iterdir())) == 2, "a draft is left"


def test_a_race_never_reads_it(folder, builds, tmp_path):
    """Workers that vouch, profile or count prepare without a store."""
    engine, workload = usable("tcc"), workloads.load("xor")
    for _ in range(2):
        engine.prepare(workload, objects=Store(tmp_path / "of the race"))
        engine.prepare(workload)
    assert len(builds) == 4
    assert not folder.exists()
