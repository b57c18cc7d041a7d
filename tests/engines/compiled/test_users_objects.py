"""The user's cache of objects: used by `compile` and `zoomgrad train`, bounded, verified, and never by a race."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from array import array
from dataclasses import fields, replace

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.api import Store
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.kernel import building, object_cache
from zoomgrad.engines.kernel.engine import Order
from zoomgrad.engines.rerolled import c_engines
from zoomgrad.harness import workloads

if os.name != "posix":
    pytest.skip("owners and modes exist only on POSIX", allow_module_level=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of objects in a separate cache, which keeps every build."""
    monkeypatch.setenv("ZOOMGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(object_cache, "USERS_FROM_SECONDS", 0.0)
    monkeypatch.setattr(object_cache, "_SINCE_NS", sys.maxsize)  # the code may have been edited a moment ago
    return tmp_path / "cache" / "objects"


@pytest.fixture
def builds(monkeypatch):
    """One entry for each build."""
    found, build = [], building.build
    monkeypatch.setattr(building, "build", lambda *args, **limits: found.append(args) or build(*args, **limits))
    return found


def program(scale=2.0):
    x = Value(5.0)
    found = usable("tcc").compile(x * scale, inputs=[x], parameters=[])
    return found.forward(), found


def objects(folder):
    return sorted(folder.glob("*.object"))


def test_a_program_is_compiled_once(folder, builds):
    first, compiled = program()
    assert (first, len(builds)) == (10.0, 1)
    again, loaded = program()
    assert (again, len(builds)) == (10.0, 1)
    assert program(3.0)[0] == 15.0
    assert len(builds) == 2, "another program got the object"
    assert loaded.sizes == compiled.sizes
    assert loaded.phases["generate"] == loaded.phases["compile"] == 0.0 < loaded.phases["load"]
    for file in objects(folder):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.iterdir())) == 2, "a draft is left"


@pytest.mark.parametrize("name", ["tcc", "rerolled-tcc"])
def test_a_kept_graph_is_not_lowered(folder, monkeypatch, name):
    engine = usable(name)

    def compiled(k):
        x, w = engine.Value(5.0), engine.Value(7.0)
        return engine.compile(x * w * k, inputs=[x], parameters=[w])

    losses = [compiled(2.0).forward(), compiled(3.0).forward()]
    assert losses == [70.0, 105.0]

    def fail(*_):
        raise AssertionError("it was lowered")

    monkeypatch.setattr(type(engine), "lower", fail)
    assert [compiled(2.0).forward(), compiled(3.0).forward()] == losses
    with pytest.raises(AssertionError, match="it was lowered"):
        compiled(4.0)


def ordered(batch=1, **more):
    return Order(None, batch, **more)


def test_the_name_of_a_graph_covers_every_part_of_its_tape(monkeypatch):
    monkeypatch.setattr(object_cache, "_SINCE_NS", sys.maxsize)
    engine = usable("tcc")
    x, w = engine.Value(5.0), engine.Value(7.0)
    tape = engine.tape(x * w + 2.0, inputs=[x], parameters=[w], outputs=[x * w])
    changes = [{"constants": [3.0]}, {"constants": [2]}, {"loss": 1}, {"outputs": (1,)}, {"inputs": 2}]
    changes += [{"parameters": 2}, {"ops": bytes([*tape.ops[:-1], tape.ops[-1] + 1])}]
    for name in ("left", "right", "index"):
        column = array("i", getattr(tape, name))
        column[-1] += 1
        changes.append({name: column})
    assert {field.name for field in fields(tape)} == {name for change in changes for name in change}
    name_of_tape = engine._name_of_graph(tape, [7.0], ordered())
    assert engine._name_of_graph(replace(tape), [8.0], ordered()) == name_of_tape
    names = [engine._name_of_graph(replace(tape, **change), [7.0], ordered()) for change in changes]
    assert len({name_of_tape, *names}) == 1 + len(names)


def test_the_name_of_a_graph_covers_what_turns_it_into_c(monkeypatch):
    monkeypatch.setattr(object_cache, "_SINCE_NS", sys.maxsize)
    engine, frozen = usable("rerolled-gcc"), usable("rerolled-gcc-frozen")
    x, w = engine.Value(5.0), engine.Value(7.0)
    tape = engine.tape(x * w, inputs=[x], parameters=[w])
    names = [engine._name_of_graph(tape, [7.0], ordered()), engine._name_of_graph(tape, [7.0], ordered(4))]
    names += [frozen._name_of_graph(tape, [number], ordered()) for number in (7.0, 8.0)]
    names.append(usable("rerolled-gcc-generic")._name_of_graph(tape, [7.0], ordered()))
    names.append(engine._name_of_graph(tape, [7.0], ordered(is_passes=True)))
    width = {8: 4, 4: 2, 2: 1}[engine.fitted.width]
    with monkeypatch.context() as narrower:
        narrower.setattr(c_engines, "width_of", lambda tool, flags, form: width)
        names.append(engine._name_of_graph(tape, [7.0], ordered()))
    monkeypatch.setattr(object_cache, "code_signature", lambda: "another version")
    names.append(engine._name_of_graph(tape, [7.0], ordered()))
    assert len(set(names)) == len(names)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of some of the package's folders, in which code can be changed."""
    folder = tmp_path / "engines" / "kernel"
    folder.mkdir(parents=True)
    monkeypatch.setattr(object_cache, "__file__", str(folder / "object_cache.py"))
    monkeypatch.setattr(object_cache, "_SINCE_NS", sys.maxsize)
    return folder


def test_the_signature_changes_with_the_code(package):
    found = []
    for name, text in (("a.py", "1"), ("a.py", "2"), ("train.c", ""), ("train.c", " "), ("notes.txt", "")):
        (package / name).write_text(text)
        found.append(object_cache.code_signature())
    assert len(set(found[:4])) == 4
    assert found[4] == found[3] != ""


def test_code_that_has_changed_since_its_import_has_no_signature(package, monkeypatch):
    """Else a process that still runs the old code would keep its objects under the name of the new."""
    (package / "a.py").write_text("1")
    assert object_cache.code_signature()
    monkeypatch.setattr(object_cache, "_SINCE_NS", (package / "a.py").stat().st_ctime_ns)
    assert object_cache.code_signature() == ""


def test_without_a_signature_nothing_is_kept_by_graph(folder, builds, monkeypatch):
    monkeypatch.setattr(object_cache, "code_signature", lambda: "")
    assert [program()[0], program()[0]] == [10.0, 10.0]
    assert len(builds) == 2
    assert objects(folder) == []


# --- who uses it -----------------------------------------------------------------------------------------------------


def test_a_race_never_reads_it(folder, builds, tmp_path):
    """Workers that vouch, profile or count prepare without a store."""
    engine, workload = usable("tcc"), workloads.load("xor")
    for _ in range(2):
        engine.prepare(workload, objects=Store(tmp_path / "of the race"))
        engine.prepare(workload)
    assert len(builds) == 4
    assert not folder.exists()


def test_a_kept_object_that_cannot_be_loaded_is_replaced(folder, builds):
    program()
    (kept_object,) = objects(folder)
    facts = kept_object.read_bytes().splitlines(keepends=True)[1]
    content = facts + b"not an object, but with the right hash"
    kept_object.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    assert (program()[0], len(builds)) == (10.0, 2)
    assert (program()[0], len(builds)) == (10.0, 2)
