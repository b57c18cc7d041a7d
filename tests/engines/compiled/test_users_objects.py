"""The user's cache of objects: used by `compile` and `zoomgrad train`, bounded, verified, and never by a race."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
import warnings
from array import array
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import pytest

from engines.api import Store
from engines.graph.value import Value
from engines.kernel import building, object_cache
from engines.kernel.building import Built
from engines.kernel.engine import Clock, Order
from engines.kernel.object_cache import USERS_MOST_BYTES, keep, kept, of_user
from engines.rerolled import c_engines
from harness import workloads
from harness.worker import train
from tests.engines.compiled.compiling import usable

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
    assert loaded.phases["lower"] > 0.0, "the phases that ran are still reported"
    for file in objects(folder):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.iterdir())) == 2, "a draft is left"


def test_a_quick_build_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(object_cache, "USERS_FROM_SECONDS", 1000.0)
    program()
    assert not folder.exists()


def test_the_time_of_the_trace_does_not_count(folder):
    """A user's program is traced again in any case."""
    engine = usable("tcc")
    x = Value(5.0)
    code = engine.lower(engine.tape(x * 2.0, inputs=[x], parameters=[]))
    clock = Clock()
    clock.phases["trace"] = 2000.0
    engine.build(code, clock, Order(Store(folder, 1000.0, USERS_MOST_BYTES)))
    assert not folder.exists()


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


@pytest.mark.parametrize(
    "change",
    [
        {"constants": [3.0]},
        {"constants": [2]},
        {"loss": 1},
        {"outputs": (1,)},
        {"inputs": 2},
        {"parameters": 2},
        {"ops": "parameter"},
        {"left": 0},
        {"right": 0},
        {"index": 0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_name_of_a_graph_covers_every_part_of_its_tape(change, monkeypatch):
    monkeypatch.setattr(object_cache, "_SINCE_NS", sys.maxsize)
    engine = usable("tcc")
    x, w = engine.Value(5.0), engine.Value(7.0)
    tape = engine.tape(x * w + 2.0, inputs=[x], parameters=[w], outputs=[x * w])
    (name,), other = change, tape
    if name == "ops":
        other = replace(tape, ops=bytes([*tape.ops[:-1], tape.ops[-1] + 1]))
    elif name in ("left", "right", "index"):
        column = array("i", getattr(tape, name))
        column[-1] += 1
        other = replace(tape, **{name: column})
    else:
        other = replace(tape, **change)
    assert engine._name_of_graph(tape, [7.0], ordered()) == engine._name_of_graph(replace(tape), [8.0], ordered())
    assert engine._name_of_graph(other, [7.0], ordered()) != engine._name_of_graph(tape, [7.0], ordered())


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
        narrower.setattr(c_engines, "fastest", lambda tool, flags, form: width)
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


def test_files_that_an_editor_leaves_do_not_matter(package):
    (package / "a.py").write_text("1")
    before = object_cache.code_signature()
    (package / ".#a.py").symlink_to("somebody@host:1")
    (package / "loop").symlink_to(package)
    assert object_cache.code_signature() == before != ""


def test_code_that_cannot_be_read_has_no_signature(package, monkeypatch):
    monkeypatch.setattr(object_cache, "__file__", str(package / "missing" / "engines" / "kernel" / "object_cache.py"))
    assert object_cache.code_signature() == ""


def test_without_a_signature_nothing_is_kept_by_graph(folder, builds, monkeypatch):
    monkeypatch.setattr(object_cache, "code_signature", lambda: "")
    assert [program()[0], program()[0]] == [10.0, 10.0]
    assert len(builds) == 2
    assert objects(folder) == []


def test_another_variant_of_a_kept_program_is_built_when_needed(folder, builds):
    engine, workload = usable("rerolled-gcc"), workloads.load("digits")
    losses = []
    for _ in range(2):
        trainer = engine.prepare(workload, objects=of_user())
        trainer.train(3)
        trainer.restart(batch=8)
        trainer.train(16)
        losses.append(trainer.losses[:])
    assert losses[0] == losses[1]
    assert len(builds) == 2, "the late variant was compiled twice"


def test_off(folder, builds, monkeypatch):
    program()
    monkeypatch.setenv("ZOOMGRAD_CACHE", "off")
    assert program()[0] == 10.0
    assert len(builds) == 2
    assert of_user() is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "planted"])
def test_a_damaged_object_is_compiled_again(folder, builds, damage):
    program()
    (file,) = objects(folder)
    content = bytearray(file.read_bytes())
    if damage == "cut":
        os.truncate(file, len(content) // 2)
    elif damage == "flipped":
        content[-1] ^= 1
        file.write_bytes(content)
    else:
        file.write_bytes(b"\x7fELF of somebody else")
    with pytest.warns(UserWarning, match="compiling it again"):
        assert program()[0] == 10.0
    assert program()[0] == 10.0
    assert len(builds) == 2, "the new object was not kept"


def test_a_folder_that_others_may_write_is_not_used(folder, builds):
    program()
    folder.chmod(0o777)
    with pytest.warns(UserWarning, match=r"(?s)objects are not kept: .*others may write to it.*chmod 700"):
        assert program()[0] == 10.0
    assert len(builds) == 2
    assert len(objects(folder)) == 1


def test_a_link_is_not_followed(folder, builds, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.parent.mkdir()
    folder.symlink_to(elsewhere)
    with pytest.warns(UserWarning, match="is a link"):
        assert program()[0] == 10.0
    assert not list(elsewhere.iterdir())


def test_a_folder_of_another_user_is_not_used(folder, builds, monkeypatch):
    program()
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert program()[0] == 10.0
    assert len(builds) == 2


@pytest.mark.parametrize("place", ["/proc/no/such/folder", "/dev/null/cache"])
def test_a_place_that_can_not_be_written_is_silent(monkeypatch, builds, place):
    monkeypatch.setenv("ZOOMGRAD_CACHE", place)
    monkeypatch.setattr(object_cache, "USERS_FROM_SECONDS", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program()[0] == 10.0


def test_a_full_disk_is_silent_and_leaves_nothing(folder, builds, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program()[0] == 10.0
    assert list(folder.iterdir()) == []


# --- its size --------------------------------------------------------------------------------------------------------


A, B, C, D = (letter * 32 for letter in "abcd")
"""Names of objects."""


def bounded(folder, most_bytes):
    return Store(folder, 0.0, most_bytes)


@pytest.fixture
def built(tmp_path):
    path = tmp_path / "program.so"
    path.write_bytes(bytes(1000))
    return Built(path, 1000)


def test_objects_that_were_not_used_are_removed_first(tmp_path, built):
    folder = tmp_path / "objects"
    store = bounded(folder, 3500)
    for age, name in ((40, A), (30, B), (20, C)):
        keep(built, store, name)
        then = folder.stat().st_mtime - age
        os.utime(folder / f"{name}.object", (then, then))
    with kept(store, A) as found:  # makes it the one that was used last
        assert found
    keep(built, store, D)
    assert [file.stem for file in objects(folder)] == [A, C, D]


def test_a_large_object_is_not_kept(tmp_path, built):
    store = bounded(tmp_path / "objects", 3500)
    keep(built, store, A)
    built.path.write_bytes(bytes(4000))
    keep(built, store, B)
    assert [file.stem for file in objects(store.folder)] == [A]


def test_old_drafts_and_no_other_files_are_removed(tmp_path, built):
    store = bounded(tmp_path / "objects", 2500)
    keep(built, store, A)
    for name, age in ((".old.draft", 7200), (".new.draft", 0), ("others.object", 7200)):
        (store.folder / name).write_bytes(bytes(5000))
        then = store.folder.stat().st_mtime - age
        os.utime(store.folder / name, (then, then))
    keep(built, store, B)
    assert sorted(file.name for file in store.folder.iterdir()) == [
        ".new.draft",
        f"{A}.object",
        f"{B}.object",
        "others.object",
    ]


def test_the_users_store_is_bounded(folder):
    assert of_user() == Store(folder, 0.0, USERS_MOST_BYTES)


CHURN = """
import sys
from pathlib import Path
from time import perf_counter
from engines.api import Store
from engines.kernel.building import Built
from engines.kernel.object_cache import keep, kept
store, file = Store(Path(sys.argv[1]), 0.0, 9000), Path(sys.argv[2])
for turn in range(60):
    name = str(turn % 4) * 32
    with kept(store, name) as found:
        assert found is None or found.path.read_bytes() == file.read_bytes()
    keep(Built(file, 4000), store, name)
"""


def test_processes_share_the_cache(tmp_path):
    """Each writes and removes objects of the others, and reads only whole ones."""
    (tmp_path / "program.so").write_bytes(bytes(range(250)) * 16)
    command = [sys.executable, "-W", "error", "-c", CHURN, str(tmp_path / "objects"), str(tmp_path / "program.so")]
    root = Path(__file__).parents[3]
    running = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)
    assert sum(file.stat().st_size for file in objects(tmp_path / "objects")) <= 9000


# --- who uses it -----------------------------------------------------------------------------------------------------


def test_a_race_never_reads_it(folder, builds, tmp_path):
    """Workers that vouch, profile or count prepare without a store."""
    engine, workload = usable("tcc"), workloads.load("xor")
    for _ in range(2):
        engine.prepare(workload, objects=Store(tmp_path / "of the race"))
        engine.prepare(workload)
    assert len(builds) == 4
    assert not folder.exists()


def test_training_uses_it(folder, builds):
    usable("tcc")
    for _ in range(2):
        *_, end = train.train({"engine": "tcc", "workload": "xor", "epochs": 1})
        assert end["event"] == "end"
    assert len(builds) == 1
    assert len(objects(folder)) == 1


def test_gradients_of_a_loaded_object(folder, builds):
    """The object is the whole program, not only its forward pass."""
    trained = []
    for _ in range(2):
        x, p = Value(2.0), Value(3.0)
        found = usable("tcc").compile((x * p - 1.0) ** 2, inputs=[x], parameters=[p])
        trained.append([*found.train(array("d", [1.0, 2.0, 0.5]), rate=0.1), *found.parameters])
    assert trained[0] == trained[1]
    assert len(builds) == 1


def test_a_moment_of_loading_a_kept_object_counts_once(folder, builds):
    program()
    start = perf_counter()
    _, loaded = program()
    assert len(builds) == 1
    assert sum(loaded.phases.values()) <= perf_counter() - start
    assert loaded.phases["load"] > 0


def test_a_kept_object_that_cannot_be_loaded_is_replaced(folder, builds):
    program()
    (kept_object,) = objects(folder)
    facts = kept_object.read_bytes().splitlines(keepends=True)[1]
    content = facts + b"not an object, but with the right hash"
    kept_object.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    assert (program()[0], len(builds)) == (10.0, 2)
    assert (program()[0], len(builds)) == (10.0, 2)
