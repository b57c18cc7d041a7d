"""The cache of compiled objects between blocks: only the object that was kept is ever loaded.

The tests replace it with truncated, changed, planted and foreign files.
"""

from __future__ import annotations

import os
import stat
from array import array

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.api import Store
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.kernel import object_cache as objects
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.building import Built
from zoomgrad.engines.kernel.engine import Clock, Order
from zoomgrad.engines.straight.lower import lower

if os.name != "posix":
    pytest.skip("owners and modes exist only on POSIX", allow_module_level=True)


@pytest.fixture
def built(tmp_path):
    path = tmp_path / "program.so"
    path.write_bytes(b"an object")
    return Built(path, 9)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "objects" / "of a run"


# --- engines -----------------------------------------------------------------------------------------------------


class Kept:
    """An engine with one program whose object is cached."""

    def __init__(self, name, folder):
        self.engine, self.folder = usable(name), folder
        x = Value(5.0)
        self.code = lower(self.engine.tape(x * 2.0, inputs=[x], parameters=[]))

    def block(self):
        """Build or load the program, run it, and return the result and whether it was compiled."""
        clock = Clock()
        kernel = self.engine.build(self.code, clock, Order(Store(self.folder, 0.0)))
        loss = kernel.forward(array("d", [5.0]), array("d"), kernel.workspace(), array("d"))
        return loss, bool(clock.phases)

    def object(self):
        (path,) = self.folder.glob("*.object")
        return path


@pytest.fixture(params=["tcc", "tcc-extension"])
def program(request, folder):
    program = Kept(request.param, folder)
    assert program.block() == (10.0, True)
    assert program.block() == (10.0, False)
    return program


def test_a_truncated_object_is_compiled_again(program):
    """Loading it would end the process by SIGBUS."""
    path = program.object()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.warns(UserWarning, match="compiling it again"):
        assert program.block() == (10.0, True)
    assert program.block() == (10.0, False), "the new object was not cached"


def test_the_loaded_object_is_the_hashed_one(program, monkeypatch):
    """It is a private copy: changing the file after it was read has no effect."""
    copy = objects.write

    def change_then_copy(path, content):
        program.object().write_bytes(b"changed meanwhile")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        copy(path, content)

    monkeypatch.setattr(objects, "write", change_then_copy)
    assert program.block() == (10.0, False)


def test_a_key_covers_everything_that_determines_an_object(monkeypatch):
    engine = usable("gcc-O0")
    x = Value(5.0)
    source, other = (engine.generate(lower(engine.tape(x * k, inputs=[x], parameters=[]))) for k in (2.0, 3.0))
    tool = engine.toolchain()
    keys = [
        engine._name_of_source(tool, source),
        engine._name_of_source(tool, other),
        engine._name_of_source(tool._replace(version="99.0"), source),
    ]
    keys.append(engine._name_of_source(tool._replace(command=("/other/gcc",)), source))
    monkeypatch.setattr(engine, "flags", (*engine.flags, "-g"))
    keys.append(engine._name_of_source(tool, source))
    monkeypatch.setattr(type(engine), "abi", "another interpreter")
    keys.append(engine._name_of_source(tool, source))
    monkeypatch.setattr(toolchains, "macros", lambda tool, flags: frozenset({"__AVX512F__"}))
    keys.append(engine._name_of_source(tool, source))
    assert len(set(keys)) == len(keys)
