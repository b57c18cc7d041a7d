"""The cache of compiled objects between blocks: only the object that was kept is ever loaded.

The tests replace it with truncated, changed, planted and foreign files.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import warnings
from array import array
from pathlib import Path

import pytest

from engines.api import Store, Unavailable
from engines.graph.value import Value
from engines.kernel import building, toolchains
from engines.kernel import object_cache as objects
from engines.kernel.building import Built
from engines.kernel.engine import Clock, Order
from engines.kernel.object_cache import keep
from engines.kernel.toolchains import find
from engines.straight.lower import lower
from tests.engines.compiled.compiling import usable

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


def content(folder, name="key"):
    """Return the bytes kept under that name, or None if there is no intact object."""
    with objects.kept(Store(folder), name) as found:
        return found and found.path.read_bytes()


def refused(folder, why):
    """Assert that the object is refused with a warning and deleted, and that the next lookup silently finds nothing."""
    with pytest.warns(UserWarning, match=rf"(?s)key\.object is not the object that was kept \(.*{why}"):
        assert content(folder) is None
    assert not os.path.lexists(folder / "key.object")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert content(folder) is None


def test_an_object_is_kept_and_found(folder, built):
    assert content(folder) is None
    keep(built, Store(folder), "key")
    built.path.unlink()
    with objects.kept(Store(folder), "key") as found:
        assert (found.path.read_bytes(), found.size) == (b"an object", 9)
        assert folder not in found.path.parents, "the object is loaded from the folder itself, not from a private copy"
        assert stat.S_IMODE(found.path.parent.stat().st_mode) == 0o700
    assert not found.path.exists()
    assert content(folder, "another") is None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()  # no draft is left
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = b"{}\nan object"
    assert file.read_bytes() == hashlib.sha256(kept).hexdigest().encode() + b"\n" + kept


def test_an_object_is_replaced_atomically(folder, built):
    keep(built, Store(folder), "key")
    before = (folder / "key.object").open("rb")
    built.path.write_bytes(b"another")
    keep(built, Store(folder), "key")
    with before:
        assert before.read().endswith(b"\nan object"), "an open file changed"
    assert content(folder) == b"another"


def test_an_object_is_synced_before_it_is_renamed(folder, built, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(names(folder)), fsync(descriptor)))
    keep(built, Store(folder), "key")
    file, whole = synced
    assert "key.object" not in file
    assert whole == ["key.object"], "the rename was not synced"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
def test_a_folder_that_others_may_write_is_refused(folder, built, mode):
    keep(built, Store(folder), "key")
    folder.chmod(mode)
    for use in (lambda: content(folder), lambda: keep(built, Store(folder), "other")):
        with pytest.raises(Unavailable) as error:
            use()
        assert "others may write to it" in error.value.reason
        assert f"`chmod 700 {folder}`" in error.value.remedy
    assert names(folder) == ["key.object"]
    folder.chmod(0o755)
    assert content(folder), "a folder that others may only read was refused"


def test_a_folder_of_another_user_is_refused(folder, built, monkeypatch):
    keep(built, Store(folder), "key")
    monkeypatch.setattr(objects.os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(Unavailable, match="belongs to another user"):
        content(folder)


def test_a_folder_that_is_a_link_is_refused(tmp_path, folder, built):
    keep(built, Store(folder), "key")
    link = tmp_path / "link"
    link.symlink_to(folder)
    for use in (lambda: content(link), lambda: keep(built, Store(link), "other")):
        with pytest.raises(Unavailable, match="is a link"):
            use()


def test_a_file_in_place_of_the_folder_disables_the_cache(folder, built):
    folder.parent.mkdir()
    folder.touch()
    assert content(folder) is None
    with pytest.warns(UserWarning, match="could not be kept"):
        keep(built, Store(folder), "key")


# --- wrong files in place of an object ---------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 64, 65, 66, 73])
def test_a_truncated_object(folder, built, length):
    """The cut is in the hash or in the object's bytes."""
    keep(built, Store(folder), "key")
    os.truncate(folder / "key.object", length)
    refused(folder, "its bytes do not match its hash")


@pytest.mark.parametrize("at", [0, 63, 64, 65, 73])
def test_a_flipped_bit(folder, built, at):
    keep(built, Store(folder), "key")
    path = folder / "key.object"
    held = bytearray(path.read_bytes())
    held[at] ^= 1
    path.write_bytes(held)
    refused(folder, "its bytes do not match its hash")


def test_a_plain_object_without_a_hash(folder, built):
    keep(built, Store(folder), "key")
    (folder / "key.object").write_bytes(b"\x7fELF, say")
    refused(folder, "its bytes do not match its hash")


def test_an_object_that_grew(folder, built):
    keep(built, Store(folder), "key")
    with (folder / "key.object").open("ab") as file:
        file.write(b"x")
    refused(folder, "its bytes do not match its hash")


def test_an_object_that_is_a_link(tmp_path, folder, built):
    keep(built, Store(folder), "key")
    path = folder / "key.object"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    refused(folder, "")
    assert (tmp_path / "elsewhere").exists(), "the link's target was deleted instead of the link"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_an_object_that_others_may_write(folder, built, mode):
    keep(built, Store(folder), "key")
    (folder / "key.object").chmod(mode)
    refused(folder, "another user owns it or may write to it")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change a file's owner")
def test_an_object_of_another_user(folder, built):
    keep(built, Store(folder), "key")
    os.chown(folder / "key.object", 12345, -1)
    refused(folder, "another user owns it")


def test_a_fifo_does_not_block(folder, built):
    keep(built, Store(folder), "key")
    (folder / "key.object").unlink()
    os.mkfifo(folder / "key.object", 0o600)
    refused(folder, "not a regular file")


def test_an_object_that_is_too_large(folder, built, monkeypatch):
    keep(built, Store(folder), "key")
    monkeypatch.setattr(objects, "LARGEST_BYTES", 8)
    refused(folder, "77 bytes")


def test_a_folder_in_place_of_the_object_stays_unused(folder, built):
    folder.mkdir(mode=0o700, parents=True)
    (folder / "key.object").mkdir()
    with pytest.warns(UserWarning, match="not a regular file"):
        assert content(folder) is None
    with pytest.warns(UserWarning, match="could not be kept"):
        keep(built, Store(folder), "key")
    assert names(folder) == ["key.object"], "a draft was left behind"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_failed_sync_keeps_no_object(folder, built, monkeypatch, code):
    def refuse(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.warns(UserWarning, match=f"could not be kept, so every block compiles it again .*{os.strerror(code)}"):
        keep(built, Store(folder), "key")
    assert names(folder) == []


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


@pytest.fixture(params=["tcc", "gcc-O0", "tcc-extension"])
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


def test_the_constructor_of_a_planted_object_does_not_run(program, tmp_path):
    tool = (
        find("gcc")
        if shutil.which("gcc")
        else pytest.skip("needs gcc for __attribute__((constructor)): apt install gcc")
    )
    ran = tmp_path / "ran"
    source = f"""
    #include <stdio.h>
    __attribute__((constructor)) static void run(void) {{ FILE *f = fopen("{ran}", "w"); if (f) fclose(f); }}
    double forward(const double *x, const double *p, double *w, double *y) {{ return 666.0; }}
    """
    with building.build(tool, [source], ("-O0",)) as planted:
        program.object().write_bytes(planted.path.read_bytes())
    with pytest.warns(UserWarning, match="compiling it again"):
        assert program.block() == (10.0, True)
    assert not ran.exists()


def test_the_loaded_object_is_the_hashed_one(program, monkeypatch):
    """Changing the file after it was read has no effect."""
    copy = objects.write

    def change_then_copy(path, content):
        program.object().write_bytes(b"changed meanwhile")
        copy(path, content)

    monkeypatch.setattr(objects, "write", change_then_copy)
    assert program.block() == (10.0, False)


def test_a_process_survives_a_truncated_object(folder):
    """The same in a subprocess, where SIGBUS would show as a signal."""
    usable("tcc")
    code = f"""
import os, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from tests.engines.compiled.test_objects import Kept
program = Kept("tcc", Path({str(folder)!r}))
print(program.block())
path = program.object()
os.truncate(path, path.stat().st_size // 3)
print(program.block(), program.block())
"""
    root = Path(__file__).parent.parent.parent.parent
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "(10.0, True)\n(10.0, True) (10.0, False)\n"


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


def test_an_extension_depends_on_its_interpreter():
    assert usable("tcc").abi == ""
    assert sys.version in usable("tcc-extension").abi
